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
    remove(id, what)
  elseif what == 'move' then
    local dir, port = string.match(rest, '^(%S+) (%S+)$')
    move(id, dir, port)
    break
  elseif what == 'spread' then
    hub.spread_some()
    break
  elseif what == 'close' then
    close(id, string.match(rest, '^(%S+) (%S+)$'))
    break
  elseif what == 'quiesce' then
    local before, todo, digest, life = string.match(rest, '^(%S+) (%S+) (%S*) (.*)$')
    local at = { before = before, digest = digest, todo = {} }
    for one in string.gmatch(todo, '[^,]+') do at.todo[#at.todo + 1] = one end
    if life ~= LIFE then at = { before = '-', digest = '', todo = { id .. ':0' } } end -- the cursors mean nothing
    if call('HDEL', key(id), 'search') == 1 then end_feedback(id, at) end
    rested(load(id)) -- those that it is within have waited for this
    break
  elseif what == 'free' then
    local port, upto = string.match(rest, '^(%S+) (%S+)$')
    free(id, port, upto, load(id).status == '')
    break
  elseif what == 'scrap' then
    if load(id).status ~= '' then erase(id, 'scrap') end
  elseif what == 'enter' then
    for _ = 1, 20 do
      local held = call('LPOP', key(id) .. ':held')
      if not held then break end
      local child, to, at = string.match(held, '^(%S+) (%S+) (%S*)$')
      subscribe_ports(child)
      local status = load(child).status
      if status == to or status == S.waiting then
        load(child).status = ''
        place(load(child), to, tonumber(at))
      end
    end
    if call('EXISTS', key(id) .. ':held') == 1 then
      chore('enter', id)
    elseif load(id).graph and load(id).key then
      review(load(id))
    end
  end
end
local left = call('LLEN', P .. 'chores')
if left == 0 then
  call('ZREM', P .. 'due', '!chores')
  urgent['!chores'] = nil
end
return { done > 0 and left or 0, wakes() }
