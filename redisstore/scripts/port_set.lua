-- port_set: replace the ports of a job that are not wired.
-- KEYS: due
-- ARGV: job, what set_ports() in port.lua reads
-- reply: {'ok' | 'gone', {ready jobs}}
local id = arg()
if load(id).status == '' then return { 'gone', {} } end
set_ports(id)
touch(id)
return { 'ok', wakes() }
