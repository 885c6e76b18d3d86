-- tree_purge: have trees that have settled removed now, as if they were past their retention.
-- KEYS: due
-- ARGV: root jobs…
-- reply: how many of them have settled. What holds messages that nobody has read, or is locked, stays, as at its retention.
probe()
local n = 0
for i = cursor + 1, #ARGV do
  local id = ARGV[i]
  local r = compact.of(tree(id))
  if r and r.status == 'over' and id == r.root or not r and retain.over(load(id).status) and not load(id).parent then
    retain.at(id, NOW)
    n = n + 1
  end
end
return n
