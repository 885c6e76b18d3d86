-- changes: which jobs have changed, of those that somebody follows. From the first call on that is kept, for a while.
-- KEYS: due
-- ARGV: what is followed (roots, all, or the root of a tree), number of the last change that is known or '', jobs at most,
--       ms to keep it
-- reply: {number of the first change that is kept, that of the last one, {job, number, …}}
local of, known, most, ms = arg(), arg(), num(), num()
local k, trees = P .. 'changes:' .. of, P .. 'changes:trees'
local function number(at) return str(tonumber(call('ZRANGE', k, at, at, 'WITHSCORES')[2])) end

-- follow lists a tree among those that are followed, for as long as any is, and takes out those that no longer are.
local function follow()
  for _, root in ipairs(call('SMEMBERS', trees)) do
    if call('EXISTS', P .. 'changes:' .. root) == 0 then call('SREM', trees, root) end
  end
  call('SADD', trees, of)
  call('PEXPIRE', trees, ms)
end

if call('EXISTS', k) == 0 then call('ZADD', k, str(NOW * 1000), '-') end
if call('PTTL', k) < ms / 2 then
  call('PEXPIRE', k, ms)
  if of ~= 'roots' and of ~= 'all' then follow() end
end
local changed = known == '' and {} or call('ZRANGEBYSCORE', k, '(' .. known, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
for n = 2, #changed, 2 do changed[n] = str(tonumber(changed[n])) end
return { number(0), number(-1), changed }
