-- workkit_remove: remove an entry from a schedule of WorkKit. A tree that it has launched goes on.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, ID, member, token
-- reply: 0 if there is no such entry
local name, id, member, token = arg(), arg(), arg(), arg()
if repeated(token) then return 1 end
local n = call('ZREM', name .. ':next', member) + call('HDEL', name .. ':jobs', id)
call('ZREM', kit.key(name, 'order'), member)
call('HDEL', kit.key(name, 'refused'), id)
if n > 0 then remember(token) end
return n
