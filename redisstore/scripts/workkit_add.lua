-- workkit_add: add an entry to a schedule of WorkKit, unless it is there.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, ID, JSON, member, score, token
-- reply: 1, or 0 if it is there
local name, id, raw, member, score, token = arg(), arg(), arg(), arg(), arg(), arg()
if repeated(token) then return 1 end -- it may have run since
if call('HSETNX', name .. ':jobs', id, raw) == 0 then return 0 end
remember(token)
call('SADD', P .. 'workkit', name)
kit.put(name, member, score)
return 1
