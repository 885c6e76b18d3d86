-- patch.lua: changing a graph at work.

-- lost tells which port a field is of, if it is not among those to be kept.
local function lost(field, keep)
  local dir, port = string.match(field, '^([io])%.(.+)$')
  if dir and not keep[field] and not keep[dir .. '.*'] then return dir, port end
end

-- holds tells whether a job has messages in ports that are not to be kept.
local function holds(id, keep)
  for _, field in ipairs(call('HKEYS', key(id))) do
    local dir, port = lost(field, keep)
    if dir and call('EXISTS', key(id) .. ':' .. dir .. ':' .. port) == 1 then return true end
  end
end

-- unlike tells why a port may not get another type of messages, and how many it holds; nil if it may.
local function unlike(r)
  local list = key(r.id) .. ':' .. r.dir .. ':' .. r.port
  local n = call('LLEN', list)
  if not r.convert then return n > 0 and 'typed' or nil, n end
  local head = call('HGET', key(r.id), 'h.' .. r.dir .. '.' .. r.port) or '0'
  return (n ~= #r.items or n > 0 and head ~= r.head) and 'stale' or nil, n
end

-- convert puts messages of another type in the place of those that a port holds. A run that may have read them is repeated.
local function convert(r)
  local list, j = key(r.id) .. ':' .. r.dir .. ':' .. r.port, load(r.id)
  if #r.items == 0 then return end
  call('DEL', list)
  for i = 1, #r.items, CHUNK do call('RPUSH', list, unpack(r.items, i, math.min(i + CHUNK - 1, #r.items))) end
  if j.token then
    j.again, j.moved = true, true
    call('HSET', key(r.id), 'again', '2')
  end
end

-- OPTIONAL are fields of jobs that a new definition may do without.
local OPTIONAL = { args = true, priority = true, options = true, policy = true, loop = true, silent = true, defaults = true }

-- redefault sets the defaults of a job that its new definition changes, by the marks of the old and the new one. It leaves
-- those that somebody set meanwhile.
local function redefault(s, old)
  local kd, before, after, changed = key(s.id) .. ':d', {}, {}, false
  for port, mark in string.gmatch(old, '(%S+)=(%S+)') do before[port] = mark end
  for port, mark in string.gmatch(call('HGET', key(s.id), 'defaults') or '', '(%S+)=(%S+)') do after[port] = mark end
  for i = 1, #s.defaults, 2 do
    local port = s.defaults[i]
    if before[port] ~= after[port] then
      changed = true
      call('HSET', kd, port, s.defaults[i + 1])
    end
  end
  for port in pairs(before) do
    if not after[port] then
      changed = true
      call('HDEL', kd, port)
    end
  end
  if changed then wake(s.id) end
end

-- subscribed gives a job the subscriptions of its new definition; ports that `*` has admitted, those of that one.
local function subscribed(s)
  local all = { s.subscribed ~= '' and s.subscribed or nil }
  for _, field in ipairs(call('HKEYS', key(s.id))) do
    local port = string.match(field, '^i%.([%w_]+)$')
    for channel in string.gmatch(port and not s.keep[field] and ' ' .. s.subscribed or '', ' %*=(%S+)') do
      all[#all + 1] = port .. '=' .. channel
    end
  end
  subscriptions(s.id, table.concat(all, ' '))
end

-- patched gives jobs that stay their new fields, without the ports that they lose, and
-- removes others. Whoever was suspended by backpressure goes on: a full port may not be the one that it writes to now.
-- If it is, the next commit suspends it again.
local function patched(root, remove, stay)
  local gone = {}
  for _, s in ipairs(stay) do
    local j, defaults = load(s.id), call('HGET', key(s.id), 'defaults') or ''
    if j.listed then -- in another queue, perhaps
      line.leave(j)
      places.left(j) -- if it still waits for a limit, it is there again when it has looked
      ready[#ready + 1] = j
    end
    for _, field in ipairs(call('HKEYS', key(s.id))) do
      local dir, port = lost(field, s.keep)
      if dir then
        if dir == 'i' then gone[#gone + 1] = { s.id, port } end
        call('HDEL', key(s.id), field, 'n.' .. field, 'x.' .. field)
      elseif (OPTIONAL[field] or string.sub(field, 1, 2) == 'f.') and not s.keep[field] then
        call('HDEL', key(s.id), field)
      end
    end
    for i = 1, #s.values, CHUNK do
      call('HSET', key(s.id), unpack(s.values, i, math.min(i + CHUNK - 1, #s.values)))
    end
    amend.version(j, s.version)
    touch(s.id)
    wired = {}
    j.policy, j.queue = call('HGET', key(s.id), 'policy') or '', call('HGET', key(s.id), 'queue')
    j.priority = tonumber(call('HGET', key(s.id), 'priority') or '500')
    subscribed(s)
    redefault(s, defaults)
    if j.token then wake(s.id) end -- its run goes by the old wires: another one closes what is new
  end
  for _, id in ipairs(remove) do
    local name, parent = call('HGET', key(id), 'name'), load(id).parent
    call('HDEL', key(parent) .. ':c', name)
    for _, who in ipairs(call('SMEMBERS', key(parent) .. ':l')) do
      if string.sub(who, 1, #id + 1) == id .. ' ' then call('SREM', key(parent) .. ':l', who) end
    end
    erase(id, 'scrap')
  end
  for _, p in ipairs(gone) do free(p[1], p[2]) end
  for _, s in ipairs(stay) do free_all(load(s.id)) end
end

-- reopened tells whether a wired In port of a job is open: of one that has completed, an earlier patch opened it.
local function reopened(id)
  for _, field in ipairs(call('HKEYS', key(id))) do
    local port = string.match(field, '^n%.i%.(.+)$')
    if port and not closed(id, 'i', port) then return true end
  end
end

-- silenced closes what jobs that stay and run no more are newly wired to.
local function silenced(stay)
  for _, s in ipairs(stay) do
    local j = load(s.id)
    if not j.graph and (j.status == S.completed and not reopened(s.id) or inactive(j)) then silence(j) end
  end
end

-- feed opens a port that has got its first open source, and the Out ports of its job. A run of the job that is active
-- may have seen the end of its input: it is refused, and repeated.
local function feed(p)
  call('HDEL', key(p.id), 'x.' .. p.dir .. '.' .. p.port)
  local j = load(p.id)
  if p.dir == 'o' or j.graph or inactive(j) then return end -- an inactive job writes nothing
  for _, field in ipairs(call('HKEYS', key(p.id))) do
    if string.sub(field, 1, 2) == 'o.' then call('HDEL', key(p.id), 'x.' .. field) end
  end
  if j.token then
    j.again, j.moved = true, true
    call('HSET', key(p.id), 'again', '2')
  end
end

-- refeed counts anew how many open sources each port has. One that had none and has some now is fed; one that has lost
-- them all is closed, or left to feedback.
local function refeed(ports)
  local function open_sources(p)
    local n = 0
    for _, s in ipairs(p.sources) do
      if not closed(s[1], s[2], s[3]) or (wires(s[1], s[2], s[3]) or {}).moving then n = n + 1 end
    end
    return n
  end
  local changed = true
  while changed do
    changed = false
    for _, p in ipairs(ports) do
      local name = p.dir .. '.' .. p.port
      local unfed = not p.fed and call('HEXISTS', key(p.id), 'n.' .. name) == 0 or closed(p.id, p.dir, p.port)
      if unfed and open_sources(p) > 0 then
        changed, p.fed = true, true
        feed(p)
      end
    end
  end
  for _, p in ipairs(ports) do
    local name, n = p.dir .. '.' .. p.port, open_sources(p)
    local loops = call('HEXISTS', key(p.id), 'f.' .. name) == 1
    local fed = loops or #p.sources > 0 or call('HEXISTS', key(p.id), 'n.' .. name) == 1
    if fed then call('HSET', key(p.id), 'n.' .. name, str(n)) end
    p.ends = fed and n == 0 and not closed(p.id, p.dir, p.port)
    if loops then
      call(p.ends and 'SADD' or 'SREM', key(load(p.id).parent) .. ':l', p.id .. ' ' .. p.port)
      p.ends = false
    end
  end
  for _, p in ipairs(ports) do
    if p.ends then finish(p.id, p.dir, p.port) end
  end
end

-- kept returns the ports of jobs that hold messages and have wires now, and notes that these are to be moved on.
local function kept(stay)
  local ports = {}
  for _, s in ipairs(stay) do
    for _, field in ipairs(call('HKEYS', key(s.id))) do
      local dir, port = string.match(field, '^([io])%.([%w_]+)$')
      if dir and #wires(s.id, dir, port) > 0 and call('EXISTS', key(s.id) .. ':' .. dir .. ':' .. port) == 1 then
        call('HSET', key(s.id), field, call('HGET', key(s.id), field) .. MOVING)
        call('SADD', P .. 'moving:' .. tree(s.id), s.id .. ' ' .. dir .. ' ' .. port)
        ports[#ports + 1] = { s.id, dir, port }
      end
    end
  end
  wired = {}
  return ports
end

-- move_on moves what some ports hold along their wires, or has it done by the chores if that is much.
local function move_on(ports)
  for _, p in ipairs(ports) do
    if spent < PIECE then move(unpack(p)) else chore('move', table.concat(p, ' ')) end
  end
end

-- recount counts the children of a graph, and of those in it, anew.
local function recount(id)
  local children, open, broken = call('HVALS', key(id) .. ':c'), 0, 0
  for _, child in ipairs(children) do
    if load(child).graph then recount(child) end
  end
  for _, child in ipairs(children) do
    local j = load(child)
    local ignored = j.policy == 'ignore' and j.status == S.failed
    if not SETTLED[j.status] and not ignored then open = open + 1 end
    if j.status == S.failed and not ignored then broken = broken + 1 end
  end
  local g = load(id)
  g.open, g.broken = open, broken
  call('HSET', key(id), 'open', str(open), 'broken', str(broken))
  review(g)
end
