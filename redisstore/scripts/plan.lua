-- plan.lua: creating the jobs of plans.

-- node reads the head of one job to be created; skip passes over the rest of it. In place of a time there is a + if it has
-- nothing of what few jobs have and its parent is a graph, a - if the parent is none: then its fields begin with type and queue.
local function node()
  local n = { id = arg(), event = arg(), at = arg(), parent = arg(), name = arg() }
  n.usual = n.at == '+' and '1' or n.at == '-' and '0'
  n.at = tonumber(n.at)
  return n
end

local function skip()
  for _ = 1, 3 do cursor = cursor + 1 + tonumber(ARGV[cursor + 1]) end
end

-- doubled tells whether one of some new jobs is there already: a Redis that lost its last writes gives numbers
-- out again that others hold.
local function doubled(ids)
  for i = 1, #ids, CHUNK do
    local keys = {}
    for n = i, math.min(i + CHUNK - 1, #ids) do keys[#keys + 1] = key(ids[n]) end
    if call('EXISTS', unpack(keys)) > 0 then return true end
  end
  return false
end

-- erased tells whether a tree was deleted under this ID, and its aliases are not forgotten yet, or not for long: whoever
-- still has the ID from one of them may not make a tree that would lose it, or that has lost it already.
local function erased(id)
  local is = call('ZSCORE', P .. 'erased', id)
  if is and call('ZSCORE', P .. 'due', '!mail') then urgent['!mail'] = true end
  return is
end

-- ahead returns the IDs of the next n jobs of ARGV, and stays where it is.
local function ahead(n)
  local ids, at = {}, cursor
  for i = 1, n do
    ids[i] = node().id
    skip()
  end
  cursor = at
  return ids
end

-- subscribe_ports makes the subscriptions that a job was created with.
local function subscribe_ports(id)
  for port, channel in string.gmatch(call('HGET', key(id), 'subscribed') or '', '(%S+)=(%S+)') do
    if port ~= '*' then mail('hub', 'subscribe', channel, id .. ' ' .. port) end
  end
end

-- fresh is what load would return of a job that is created with these fields.
local function fresh(id, f, status)
  local parent = f.parent ~= '' and f.parent
  return {
    id = id, status = status, type = f.type, queue = f.queue, priority = tonumber(f.priority or '500'),
    token = false, last = false, again = false,
    parent = parent, pgraph = f.pgraph == '1', graph = f.graph == '1', open = tonumber(f.open or '0'), broken = 0,
    step = 0, version = 0, tries = 0, silent = f.silent or '', rate = '', blocked = 0, loop = f.loop,
    policy = f.policy or '', touched = 0, key = f.key, round = tonumber(f.round or ''),
  }
end

-- chunked gives n values of ARGV from position p on to a command, in chunks.
local function chunked(command, k, p, n)
  for i = 1, n, CHUNK do
    call(command, k, unpack(ARGV, p + i, p + math.min(i + CHUNK - 1, n)))
  end
end

-- create_next creates the next job of ARGV: node, its fields, its defaults, its messages. With held
-- it does not enter yet: how it will is put down in that list. Of a root that waits for its key it returns the list for those
-- below it.
local function create_next(held)
  local n = node()
  local k, f, count = key(n.id), {}, num()
  local at = cursor
  if n.usual then
    f.type, f.queue, f.parent, f.pgraph = ARGV[at + 2], ARGV[at + 4], n.parent, n.usual
  else
    for i = at + 1, at + count, 2 do f[ARGV[i]] = ARGV[i + 1] end
  end
  cursor = at + count
  local defaults = num()
  chunked('HSET', k .. ':d', cursor, defaults)
  cursor = cursor + defaults
  for _ = 1, num() / 2 do
    local port = arg()
    call('RPUSH', k .. ':i:' .. port, arg())
  end
  if n.parent == '' then call('ZADD', P .. 'index', 0, n.id) end
  if n.at and n.at <= NOW then n.event, n.at = 'create', nil end
  local to, now, first = EV[n.event][''], MOMENT, math.min(count, CHUNK)
  local j = fresh(n.id, f, to)
  jobs[n.id] = j
  local waits = j.key and n.parent == '' and not serial.take(j)
  if waits or held and to ~= S.suspended and serial.below(n.id) then j.status = EV.create_waiting[''] end
  local enters = n.usual and not held and to ~= S.suspended -- with the same command
  if held or waits or to == S.suspended then
    call('HSET', k, 'created', now, 'status', j.status, unpack(ARGV, at + 1, at + first))
  elseif not enters then
    call('HSET', k, 'created', now, unpack(ARGV, at + 1, at + first))
  end
  chunked('HSET', k, at + first, count - first)
  if n.parent ~= '' and j.silent ~= '1' and load(n.parent).silent == '1' then
    j.silent = '1'
    call('HSET', k, 'silent', '1')
  end
  if j.round == line.TIMES then line.timed(j, NOW) end -- it has no time of its own
  if n.parent ~= '' then
    if line.families then
      local names = line.families[n.parent] or {}
      line.families[n.parent], names[#names + 1], names[#names + 2] = names, n.name, n.id
    else
      call('HSET', key(n.parent) .. ':c', n.name, n.id)
    end
    for _, field in ipairs(j.loop == '1' and call('HKEYS', k) or {}) do -- what only feedback feeds is put aside
      local port = string.match(field, '^f%.i%.(.+)$')
      if port and call('HGET', k, 'n.i.' .. port) == '0' then call('SADD', key(n.parent) .. ':l', n.id .. ' ' .. port) end
    end
  end
  if held then
    if to ~= S.suspended or f.subscribed then
      call('RPUSH', held, n.id .. ' ' .. to .. ' ' .. (n.at and str(n.at) or ''))
    end
    return
  end
  if f.subscribed then subscribe_ports(n.id) end
  if waits then
    if n.at then call('HSET', k, 'start', str(n.at)) end
    tell(j)
    return k .. ':held'
  end
  if to == S.suspended then return tell(j) end -- as most jobs of graphs
  j.status = ''
  if enters then return place(j, to, n.at, 'created', now, unpack(ARGV, at + 1, at + first)) end
  place(j, to, n.at)
end

-- count_created counts jobs that are created in a tree.
local function count_created(id, n) call('HINCRBY', P .. 't:' .. tree(id), 'jobs', n) end
