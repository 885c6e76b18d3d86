-- fused: the least that three durable runs, each on what the one before wrote, can be when
-- one script commits them together.
-- KEYS: three jobs, list that the first reads, list that the last writes
-- ARGV: token of the first job's run, version of each job, token of its next run, message
-- reply: the next message, or false
local v = redis.call('HMGET', KEYS[1], 'token', 'version')
if v[1] ~= ARGV[1] or v[2] ~= ARGV[2] then return redis.error_reply('fenced') end
for i = 2, 3 do
  if redis.call('HGET', KEYS[i], 'version') ~= ARGV[i + 1] then return redis.error_reply('moved') end
end
redis.call('LPOP', KEYS[4])
redis.call('RPUSH', KEYS[5], ARGV[6])
redis.call('HSET', KEYS[1], 'token', ARGV[5], 'version', ARGV[2] + 1, 'status', 'running')
redis.call('HSET', KEYS[2], 'version', ARGV[3] + 1, 'status', 'suspended')
redis.call('HSET', KEYS[3], 'version', ARGV[4] + 1, 'status', 'suspended')
return redis.call('LINDEX', KEYS[4], 0)
