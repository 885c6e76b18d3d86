-- engine_beat: note that an engine lives, or with an empty info that it has stopped.
-- KEYS: due, that of the channels
-- ARGV: engine, info, ms after which it counts as dead
-- reply: 1
local id, info, gone = arg(), arg(), num()
local k, all = P .. 'engine:' .. id, P .. 'engines'
if info == '' then
  call('DEL', k)
  call('ZREM', all, id)
  return 1
end
call('HSET', k, 'info', info)
call('HSETNX', k, 'started', str(NOW))
call('PEXPIRE', k, gone)
call('ZADD', all, str(NOW), id)
call('ZREMRANGEBYSCORE', all, '-inf', str(NOW - gone))
call('PEXPIRE', all, gone)
return 1
