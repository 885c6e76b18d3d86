-- workkit_due: read a page of what is due of a schedule of WorkKit. Of those with the same score come first, in their order,
-- those that Weir put there.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, members to pass over
-- reply: {now, score of the first that is not due yet or '', {member, score, …}}
local name, over = arg(), num()
local queue, order, now = name .. ':next', kit.key(name, 'order'), str(NOW)
local found = call('ZRANGEBYSCORE', queue, '-inf', now, 'WITHSCORES', 'LIMIT', over, CHUNK)
local later = call('ZRANGEBYSCORE', queue, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
local all, known = {}, #found > 2 and call('EXISTS', order) == 1
for i = 1, #found, 2 do
  local alike = known and (found[i + 1] == found[i + 3] or found[i + 1] == found[i - 1])
  local place = alike and call('ZSCORE', order, found[i])
  all[#all + 1] = { found[i], found[i + 1], place = tonumber(place or '') or math.huge, at = i }
end
table.sort(all, function(a, b)
  if a[2] ~= b[2] or a.place == b.place then return a.at < b.at end
  return a.place < b.place
end)
for i, one in ipairs(all) do found[2 * i - 1], found[2 * i] = one[1], one[2] end
return { now, later, found }
