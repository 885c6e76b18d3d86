-- port_connect: move some of the messages of a port, and copy its default, to ports of its tree, and the messages alone to In
-- ports of other trees, which the caller has looked at: it copies the default. The caller calls it again until none are left;
-- should it die, `due` says what it was at.
-- KEYS: due
-- ARGV: job, direction, port, token, number of the piece, up to which position, ports, then of each: job, direction, port
-- reply: {'ok', {ready jobs}, {messages}, 1 if there are more} | {'gone' | 'port' | 'closed', {}}
local id, dir, port, token, piece, upto, to = arg(), arg(), arg(), arg(), arg(), num(), {}
local rest, copies, ports = { '!connect', id, dir, port, str(upto) }, 0, 0

-- refused ends what others may have begun.
local function refused(why)
  call('ZREM', KEYS[1], table.concat(rest, ' '))
  return { why, {} }
end

local n = num()
for i = 1, n do
  to[i] = { arg(), arg(), arg() }
  rest[#rest + 1] = table.concat(to[i], ' ')
end
if load(id).status == '' then return refused('gone') end
local edges = wires(id, dir, port)
if not edges then return refused('port') end
for _, e in ipairs(to) do
  local each, all = 1, 1
  if tree(e[1]) == tree(id) then
    if load(e[1]).status == '' then return refused('gone') end
    if not wires(e[1], e[2], e[3]) then return refused('port') end
    if closed(e[1], e[2], e[3]) then return refused('closed') end
    each, all = fanout.reach(e[1], e[2], e[3])
  end
  copies, ports = copies + each, ports + all
end
local k, field = key(id) .. ':' .. dir .. ':' .. port, 'h.' .. dir .. '.' .. port
local head = tonumber(call('HGET', key(id), field) or '0')
local most, bytes = fanout.piece(math.max(copies, 1), ports)
most = math.min(upto - head, most)
if repeated(token .. piece) then return { 'ok', {}, {}, most > 0 and call('EXISTS', k) or 0 } end
local items = batch(k, 0, most, bytes)
remember(token .. piece)
local more = head + #items < upto and call('LLEN', k) > #items
if more then
  call('ZADD', KEYS[1], str(NOW + 10 * LOOK), table.concat(rest, ' '))
else
  call('ZREM', KEYS[1], table.concat(rest, ' '))
end
local default = piece == '1' and call('HGET', key(id) .. ':d', dir == 'i' and port or 'o.' .. port)
local entry = ''
if #items > 0 then
  call('HINCRBY', key(id), field, #items)
  entry = string.format('{"read":[{"job":"%s","dir":"%s","port":"%s","from":%s,"n":%s}]}',
    id, dir == 'i' and 'in' or 'out', port, str(head), str(#items))
  sent = {}
  call('LTRIM', k, #items, -1)
end
for _, e in ipairs(to) do
  if tree(e[1]) == tree(id) then
    deliver(e[1], e[2], e[3], items)
    if default then set_default(e[1], e[2], e[3], default) end
  elseif #items > 0 then
    mail_all(e[1], items, 'write', e[1], e[3], id)
  end
end
drained(id, dir, port, edges.limit)
log_run(id, entry)
return { 'ok', wakes(), items, more and 1 or 0 }
