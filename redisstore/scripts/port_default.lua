-- port_default: set or clear the default of a port.
-- KEYS: due
-- ARGV: job, token, direction, port, '1' to set, default
-- reply: {'ok' | 'gone' | 'port', {ready jobs}}
local id, token, dir, port, set, value = arg(), arg(), arg(), arg(), arg() == '1', arg()
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
if repeated(token) then return { 'ok', {} } end
remember(token)
set_default(id, dir, port, set and value or nil)
return { 'ok', wakes() }
