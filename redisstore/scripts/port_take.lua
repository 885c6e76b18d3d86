-- port_take: remove messages from the front of a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, head, count, token
-- reply: 'ok' | 'gone' | 'moved'
local id, dir, port, head, n, token = arg(), arg(), arg(), arg(), num(), arg()
local k = key(id)
if load(id).status == '' then return 'gone' end
if call('ZSCORE', P .. 'seen', token .. head) then return 'ok' end
if (call('HGET', k, 'h.' .. dir .. '.' .. port) or '0') ~= head then return 'moved' end
if call('LLEN', k .. ':' .. dir .. ':' .. port) < n then return 'moved' end
call('ZADD', P .. 'seen', str(NOW), token .. head)
call('ZREMRANGEBYSCORE', P .. 'seen', '-inf', str(NOW - 60000))
call('LTRIM', k .. ':' .. dir .. ':' .. port, n, -1)
call('HINCRBY', k, 'h.' .. dir .. '.' .. port, n)
return 'ok'
