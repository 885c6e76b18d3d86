-- chore_run: do some of the work that was too long for one script.
-- KEYS: due
-- ARGV: how much
-- reply: {chores left, {ready jobs}}
for _ = 1, num() do
  local entry = call('LPOP', P .. 'chores')
  if not entry then break end
  local what, id = string.match(entry, '^(%S+) (%S+)$')
  if what == 'terminate' then
    terminate(id, true)
  elseif what == 'delete' then
    erase(id)
  end
end
local left = call('LLEN', P .. 'chores')
if left == 0 then
  call('ZREM', P .. 'due', '!chores')
  urgent['!chores'] = nil
end
return { left, wakes() }
