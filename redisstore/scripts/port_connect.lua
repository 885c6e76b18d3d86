-- port_connect: move all messages of a port, and copy its default, to ports of its tree.
-- KEYS: due
-- ARGV: job, direction, port, token, ports, then of each: job, direction, port
-- reply: {'ok', {ready jobs}, {messages}} | {'gone' | 'port' | 'closed', {}}
local id, dir, port, token, to = arg(), arg(), arg(), arg(), {}
if load(id).status == '' then return { 'gone', {} } end
local edges = wires(id, dir, port)
if not edges then return { 'port', {} } end
for i = 1, num() do
  local e = { arg(), arg(), arg() }
  if load(e[1]).status == '' then return { 'gone', {} } end
  if not wires(e[1], e[2], e[3]) then return { 'port', {} } end
  if closed(e[1], e[2], e[3]) then return { 'closed', {} } end
  to[i] = e
end
local k = key(id) .. ':' .. dir .. ':' .. port
local items = call('LRANGE', k, 0, -1)
if repeated(token) then return { 'ok', {}, {} } end
remember(token)
local default = call('HGET', key(id) .. ':d', dir == 'i' and port or 'o.' .. port)
local entry = ''
if #items > 0 then
  local from = call('HINCRBY', key(id), 'h.' .. dir .. '.' .. port, #items) - #items
  entry = string.format('{"read":[{"job":"%s","dir":"%s","port":"%s","from":%s,"n":%s}]}',
    id, dir == 'i' and 'in' or 'out', port, str(from), str(#items))
  sent = {}
end
call('DEL', k)
for _, e in ipairs(to) do
  deliver(e[1], e[2], e[3], items)
  if default then set_default(e[1], e[2], e[3], default) end
end
drained(id, dir, port, edges.limit)
log_run(id, entry)
return { 'ok', wakes(), items }
