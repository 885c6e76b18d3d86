-- port_close: close a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, entry of the log or ''
-- reply: {'ok' | 'gone' | 'port', {ready jobs}}
local id, dir, port, entry = arg(), arg(), arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
if not closed(id, dir, port) then by_hand(id, entry) end
finish(id, dir, port)
return { 'ok', wakes() }
