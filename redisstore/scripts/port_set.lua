-- port_set: replace the ports of a job that are not wired.
-- KEYS: due
-- ARGV: job, token, what set_ports() in port.lua reads
-- reply: {'ok' | 'gone', {ready jobs}}
local id, token = arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
remember(token)
set_ports(id)
retain.read(id)
touch(id)
return { 'ok', wakes() }
