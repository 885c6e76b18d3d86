-- port_page: read messages of a port without removing them.
-- KEYS: due
-- ARGV: job, direction, port, offset, count, bytes
-- reply: {'ok', head, {messages}, 1 if there are more} | {'gone'} | {'port'}
local id, dir, port, offset, n, bytes = arg(), arg(), arg(), num(), num(), num()
if load(id).status == '' then return { 'gone' } end
if not wires(id, dir, port) then return { 'port' } end
local head = call('HGET', key(id), 'h.' .. dir .. '.' .. port) or '0'
local items, all = batch(key(id) .. ':' .. dir .. ':' .. port, offset, n, bytes)
return { 'ok', head, items, all and 0 or 1 }
