-- port_take: remove messages from the front of a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, head, count, token
-- reply: {'ok' | 'gone' | 'port' | 'moved', {ready jobs}}
local id, dir, port, head, n, token = arg(), arg(), arg(), arg(), num(), arg()
local why = compact.take(id, dir, port, head, n, token) -- of a record, which stays one
if why then return { why, {} } end
local k = key(id)
if load(id).status == '' then return { 'gone', {} } end
local edges = wires(id, dir, port)
if not edges then return { 'port', {} } end
if repeated(token .. head) then return { 'ok', {} } end
if (call('HGET', k, 'h.' .. dir .. '.' .. port) or '0') ~= head then return { 'moved', {} } end
if call('LLEN', k .. ':' .. dir .. ':' .. port) < n then return { 'moved', {} } end
remember(token .. head)
call('LTRIM', k .. ':' .. dir .. ':' .. port, n, -1)
call('HINCRBY', k, 'h.' .. dir .. '.' .. port, n)
drained(id, dir, port, edges.limit)
if dir == 'o' then retain.read(id) end
return { 'ok', wakes() }
