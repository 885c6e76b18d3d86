-- port_write: append messages to a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, token, hash or '', messages, message…
-- reply: {'ok' | 'gone' | 'port' | 'closed', {ready jobs}}
local id, dir, port, token, hash = arg(), arg(), arg(), arg(), tonumber(arg())
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
if repeated(token) then return { 'ok', {} } end
if call('HEXISTS', key(id), 'x.' .. dir .. '.' .. port) == 1 then return { 'closed', {} } end
remember(token)
local items = {}
for i = 1, num() do items[i] = arg() end
deliver(id, dir, port, items, hash)
return { 'ok', wakes() }
