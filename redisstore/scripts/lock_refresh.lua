-- lock_refresh: prolong a lock that somebody outside holds on a job.
-- KEYS: due
-- ARGV: job, token of the lock, ms
-- reply: 1, or 0 if the lock is lost
local id, token, ttl = arg(), arg(), arg()
local k = key(id) .. ':lock'
local value = call('GET', k)
if not value or value ~= token and string.sub(value, 1, #token + 1) ~= token .. ' ' then return 0 end
call('PEXPIRE', k, ttl)
return 1
