-- job_priority: give jobs a priority, which those that are ready take on at once.
-- KEYS: due
-- ARGV: priority, number of jobs, entry of the first one's log or '', job…
-- reply: {what is left}
local priority, n, entry, first = arg(), num(), arg(), nil
for i = 1, n do
  local j = load(arg())
  if i == 1 and j.status ~= '' and j.priority ~= tonumber(priority) then first = j.id end
  if j.status ~= '' then amend.priority(j, priority) end
end
if first then by_hand(first, entry) end
return wakes()
