-- job_priority: give jobs a priority, which those that are ready take on at once.
-- KEYS: due
-- ARGV: priority, number of jobs, job…
-- reply: {what is left}
local priority = arg()
for _ = 1, num() do
  local j = load(arg())
  if j.status ~= '' then amend.priority(j, priority) end
end
return wakes()
