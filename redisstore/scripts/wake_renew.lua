-- wake_renew: give a wake that cannot be delivered a new generation.
-- KEYS: due
-- ARGV: job, generation
-- reply: {ready jobs}
local id, gen = arg(), num()
local j = load(id)
if j.gen == gen and not j.token and (j.status == S.queued or j.status == S.terminating) then
  place(j, j.status)
end
return wakes()
