-- ready_fill: put those into their ready sets that a program without such sets made ready.
-- KEYS: due
-- ARGV: from which member of `due` on, how many
-- reply: {how many were looked at, {what is left}}
probe()
local from = num()
local ids = call('ZRANGE', KEYS[1], from, from + num() - 1)
for _, id in ipairs(ids) do
  local j = not string.find(id, '^[@!]') and load(id)
  if j and line.runnable(j) then line.enter(j) end
end
return { #ids, wakes() }
