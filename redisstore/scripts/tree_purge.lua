-- tree_purge: have trees that have settled removed now, as if they were past their retention.
-- KEYS: due
-- ARGV: root jobs…
-- reply: how many of them have settled. What holds messages that nobody has read, or is locked, stays, as at its retention.
probe()
local n = 0
for i = cursor + 1, #ARGV do
  local j = load(ARGV[i])
  if retain.over(j.status) and not j.parent then
    retain.at(j.id, NOW)
    n = n + 1
  end
end
return n
