-- job_priority: give jobs a priority, which those that are ready take on at once.
-- KEYS: due
-- ARGV: priority, number of jobs, job…
-- reply: {what is left}
local priority = arg()
for _ = 1, num() do
  local j = load(arg())
  if j.status ~= '' then
    j.priority = tonumber(priority)
    call('HSET', key(j.id), 'priority', priority)
    if j.listed and call('ZSCORE', line.set(j.queue, j.type), j.id) then line.enter(j) end
  end
end
return wakes()
