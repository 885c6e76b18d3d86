-- chore_run: do some of the work that was too long for one script.
-- KEYS: due
-- ARGV: how much
-- reply: {chores left, 0 if nothing could be done now, {ready jobs}}
probe()
local done = 0
for _ = 1, num() do
  local entry = #ready < MANY and call('LPOP', P .. 'chores')
  if not entry then break end
  local what, id, rest = string.match(entry, '^(%S+) (%S+) ?(.*)$')
  local later = FULL and (what == 'move' or what == 'spread') -- they need memory
  done = done + (later and 0 or 1)
  if later then
    call('RPUSH', P .. 'chores', entry)
  elseif what == 'below' then
    local act, from, life = string.match(rest, '^(%S+) (%S+) (%S*)$')
    if below(id, act, from, life) and act ~= 'terminate' then call('UNLINK', key(id) .. ':c') end
    break -- that was enough for one script
  elseif what == 'terminate' then
    terminate(id, true)
  elseif what == 'delete' then
    remove(id)
  elseif what == 'move' then
    local dir, port = string.match(rest, '^(%S+) (%S+)$')
    move(id, dir, port)
    break
  elseif what == 'spread' then
    spread_some()
    break
  elseif what == 'close' then
    close(id, string.match(rest, '^(%S+) (%S+)$'))
    break
  elseif what == 'free' then
    free(id, string.match(rest, '^(%S+) (%S+)$'))
    break
  elseif what == 'scrap' then
    if load(id).status ~= '' then erase(id, 'scrap') end
  elseif what == 'enter' then
    for _ = 1, 20 do
      local held = call('LPOP', key(id) .. ':held')
      if not held then break end
      local child, to, at = string.match(held, '^(%S+) (%S+) (%S*)$')
      subscribe_ports(child)
      if load(child).status == to then
        load(child).status = ''
        place(load(child), to, tonumber(at))
      end
    end
    if call('EXISTS', key(id) .. ':held') == 1 then chore('enter', id) end
  end
end
local left = call('LLEN', P .. 'chores')
if left == 0 then
  call('ZREM', P .. 'due', '!chores')
  urgent['!chores'] = nil
end
return { done > 0 and left or 0, wakes() }
