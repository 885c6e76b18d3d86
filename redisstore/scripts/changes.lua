-- changes: which jobs have changed, of those that somebody follows. From the first call on that is kept, for a while.
-- KEYS: due
-- ARGV: what is followed (roots, all), number of the last change that is known or '', jobs at most, ms to keep it
-- reply: {number of the first change that is kept, that of the last one, {job, number, …}}
local k, known, most, ms = P .. 'changes:' .. arg(), arg(), num(), num()
local function number(at) return str(tonumber(call('ZRANGE', k, at, at, 'WITHSCORES')[2])) end
if call('EXISTS', k) == 0 then call('ZADD', k, str(NOW * 1000), '-') end
if call('PTTL', k) < ms / 2 then call('PEXPIRE', k, ms) end
local changed = known == '' and {} or call('ZRANGEBYSCORE', k, '(' .. known, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
for n = 2, #changed, 2 do changed[n] = str(tonumber(changed[n])) end
return { number(0), number(-1), changed }
