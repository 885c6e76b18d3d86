-- port_write: append messages to a port from outside of runs.
-- KEYS: due
-- ARGV: job, direction, port, token, hash or '', '1' to wake nobody, entry for the log or '',
--       messages, message…
-- reply: {'ok' | 'gone' | 'port' | 'closed' | 'full', {ready jobs}}
local id, dir, port, token, hash = arg(), arg(), arg(), arg(), tonumber(arg())
quiet = arg() == '1'
local entry = arg()
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
if repeated(token) then return { 'ok', {} } end
if closed(id, dir, port) then return { 'closed', {} } end
if not room(id, dir, port) then return { 'full', {} } end
remember(token)
local items = {}
for i = 1, num() do items[i] = arg() end
if entry ~= '' then sent = {} end
deliver(id, dir, port, items, hash)
log_run(id, entry)
return { 'ok', wakes() }
