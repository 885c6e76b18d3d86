-- port_close: close a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, entry of the log or ''
-- reply: {'ok' | 'gone' | 'port', {ready jobs}}
local id, dir, port, entry = arg(), arg(), arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
if closed(id, dir, port) then entry = '' end
finish(id, dir, port)
by_hand(id, entry)
return { 'ok', wakes() }
