-- job_priority: give jobs a priority, which those that are ready take on at once.
-- KEYS: due
-- ARGV: priority, number of jobs, entry of the first one's log or '', job…
-- reply: {what is left}
local priority, n, entry = arg(), num(), arg()
for i = 1, n do
  local j = load(arg())
  if j.status ~= '' then
    if i == 1 and j.priority ~= tonumber(priority) then by_hand(j.id, entry) end
    amend.priority(j, priority)
  end
end
return wakes()
