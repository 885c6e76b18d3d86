-- port_close: close a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port
-- reply: {'ok' | 'gone' | 'port', {ready jobs}}
local id, dir, port = arg(), arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
finish(id, dir, port)
return { 'ok', wakes() }
