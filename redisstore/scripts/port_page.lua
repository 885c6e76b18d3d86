-- port_page: read messages of a port without removing them.
-- KEYS: due
-- ARGV: job, direction, port, offset, count, bytes
-- reply: {'ok', head, {messages}, 1 if there are more} | {'gone'} | {'port'}
local id, dir, port, offset, n, bytes = arg(), arg(), arg(), num(), num(), num()
local map, head, there = compact.map(id), nil, nil -- of a record, which stays one
if map then
  there, head = map[dir .. '.' .. port] or map[dir .. '.*'], map['h.' .. dir .. '.' .. port]
else
  if compact.of(tree(id)) or load(id).status == '' then return { 'gone' } end
  there, head = wires(id, dir, port), call('HGET', key(id), 'h.' .. dir .. '.' .. port)
end
if not there then return { 'port' } end
local items, all = batch(stem(id) .. ':' .. dir .. ':' .. port, offset, n, bytes)
return { 'ok', head or '0', items, all and 0 or 1 }
