-- workkit_remove: remove an entry from a schedule of WorkKit. A tree that it has launched goes on.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, ID, token, members that it has in the queue
-- reply: 0 if there is no such entry
local name, id, token = arg(), arg(), arg()
if repeated(token) then return 1 end
local n = call('HDEL', name .. ':jobs', id)
while cursor < #ARGV do
  local member = arg()
  n = n + call('ZREM', name .. ':next', member)
  call('ZREM', kit.key(name, 'order'), member)
end
call('HDEL', kit.key(name, 'refused'), id)
if n > 0 then remember(token) end
return n
