-- limited_leave: have jobs of a queue wait no more for places of limits, as nobody will begin them: they are ready, and claim
-- places again when somebody does.
-- KEYS: due
-- ARGV: queue, how many jobs
-- reply: {how many still wait, {what is left}}
local queue, n = arg(), num()
probe()
local set = places.waiting(queue)
for _, id in ipairs(call('ZRANGE', set, 0, n - 1)) do
  if places.waits(id, queue) then
    local j = load(id)
    places.idle(j)
    line.enter(j)
  end
  call('ZREM', set, id)
end
return { call('ZCARD', set), wakes() }
