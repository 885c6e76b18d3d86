-- subtree.lua: what concerns a job and all below it, and other long work that is cut into chores.

-- marked tells since when, and by whom, a job is being deleted; nil if it is not.
local function marked(id)
  local at, owner = string.match(call('HGET', key(id), 'deleting') or '', '^(%d+) (.*)$')
  if at and tonumber(at) > NOW - 60000 then return at, owner end
end

-- deleting tells whether a job, or one above it, is being deleted. One that was adopted
-- from another tree is marked itself.
local function deleting(id)
  local root = tree(id)
  while id and id ~= '' and tree(id) == root do
    if marked(id) then return true end
    id = call('HGET', key(id), 'parent')
  end
  return false
end

-- below gives what is to be done with a job's children to the chores, or to the shards
-- of those that were adopted from other trees. A large family is gone through in pieces, each a chore of
-- its own: from is where one begins, which means nothing in another life of the server, or to the next one that
-- has the shard. It returns whether all children were seen.
local function below(id, what, from, life)
  local family, own, next = key(id) .. ':c', {}, '0'
  local expires = string.sub(what, 1, 6) == 'expire'
  local leave = expires and retain.pieces or chores
  local size = from and 0 or call('HLEN', family)
  local function rest(cursor) return table.concat({ 'below', id, what, cursor, LIFE }, ' ') end
  if size > CHUNK then
    leave({ rest('0') })
    return false
  end
  local function give(child)
    if tree(child) == tree(id) then
      own[#own + 1] = what .. ' ' .. child
    else
      mail(child, expires and 'delete' or what, child) -- which is orphaned, unless it is terminated
    end
  end
  if from then
    local page = call('HSCAN', family, life == LIFE and from or '0', 'COUNT', CHUNK)
    next = page[1]
    for n = 2, #page[2], 2 do give(page[2][n]) end
    if next ~= '0' then own[#own + 1] = rest(next) end
  elseif size > 0 then
    for _, child in ipairs(call('HVALS', family)) do give(child) end
  end
  leave(own)
  return next == '0'
end

-- terminate begins the end of a job, and of all below it if whole. A graph, which has no
-- runs, ends at once, as does a job without Shutdown: who has it loses it. A parent has heard of the end of those that were over.
local function terminate(id, whole)
  local j = load(id)
  if j.status == '' then return end
  if whole then
    call('HSET', key(id), 'ending', '1')
    below(id, 'terminate')
  end
  local to = EV.terminate[j.status]
  if not to then return end
  if j.status == S.queued then places.release(id) end
  local heard = retain.over(j.status)
  if line.light(j) then
    amend.cut(j)
    free_all(j)
    place(j, EV.shutdown[to], nil, 'token', '')
  else
    place(j, j.graph and EV.shutdown[to] or to)
  end
  if (j.graph or line.light(j) and not heard) and j.parent and not j.pgraph then wake(j.parent, id) end
end

-- forgotten has the aliases of a job that is removed forgotten: no tree comes under the ID of a root before.
local function forgotten(id)
  local order = mail('hub', 'forget', id)
  if id ~= tree(id) then return end
  call('ZADD', P .. 'erased', order, id)
  call('PEXPIRE', P .. 'erased', str(2 ^ 43)) -- until mail_done knows better; more does not fit into 64 bits of nanoseconds
end

-- erase removes a job and gives its children to the chores: what is to be done with them.
local function erase(id, what)
  local k = key(id)
  if load(id).status ~= '' and watching() then
    mail('hub', 'publish', '/weir/job/' .. id, '{"job":"' .. id .. '","status":"deleted"}')
  end
  local keys = { k, k .. ':s', k .. ':d', k .. ':e', k .. ':t', k .. ':lock', k .. ':held', k .. ':l', k .. ':w' }
  if load(id).listed then line.leave(load(id)) end
  if load(id).status == S.queued then places.release(id) end
  if load(id).key and id == tree(id) then serial.leave(load(id)) end
  if below(id, what) then keys[#keys + 1] = k .. ':c' end -- else its chores need it
  for _, field in ipairs(call('HKEYS', k)) do
    local dir, port = string.match(field, '^([io])%.(.+)$')
    if dir then
      keys[#keys + 1] = k .. ':' .. dir .. ':' .. port
      free(id, port, nil, true)
      if field == 'o.errors' then call('ZREM', P .. 'dead', id) end
    elseif field == 'unique' then
      unique.leave(id)
    end
  end
  for port, channel in string.gmatch(call('HGET', k, 'subscribed') or '', '(%S+)=(%S+)') do
    mail('hub', 'unsubscribe', channel, id .. ' ' .. port)
  end
  for i = 1, #keys, CHUNK do call('UNLINK', unpack(keys, i, math.min(i + CHUNK - 1, #keys))) end
  call('ZREM', P .. 'due', id, '@' .. id)
  local root = call('ZREM', P .. 'index', id) == 1
  retain.forget(id, root)
  news.note(id, root)
  call('ZREM', P .. 'failures', id)
  if call('HINCRBY', P .. 't:' .. tree(id), 'jobs', -1) <= 0 then
    call('DEL', P .. 't:' .. tree(id), P .. 'l:' .. tree(id), P .. 'moving:' .. tree(id), P .. 'closing:' .. tree(id))
  end
  forgotten(id)
  jobs[id], wired = nil, {}
end

-- unborn removes what was created of a plan whose first job never came.
local function unborn(first)
  if load(first).status ~= '' then return end
  count_created(first, 1) -- for the first job, which erase counts
  call('SET', key(first) .. ':scrap', '1', 'EX', 60) -- nobody may go on with it meanwhile
  erase(first, 'scrap')
end

-- remove erases a job below one that was deleted, or that is past its retention: what says so. One that came to life
-- meanwhile goes on as a root of its own.
local function remove(id, what)
  local j = load(id)
  local over = retain.over(j.status) or what == 'expireall' and j.status == S.suspended
  if j.status == S.terminated or what ~= 'delete' and over and not j.token then
    erase(id, what)
  elseif j.status ~= '' then
    j.parent, j.pgraph = false, false
    call('HSET', key(id), 'parent', '', 'name', '', 'pgraph', '')
    call('ZADD', P .. 'index', 0, id)
    news.note(id, true)
    retain.settled(j)
  end
end

-- move sends some of the messages on that a port kept before it was wired. The last piece ends that: the port is as any
-- wired one then, and closed for those behind it if it was closed meanwhile.
local function move(id, dir, port)
  local edges = load(id).status ~= '' and wires(id, dir, port)
  local name, all = id .. ' ' .. dir .. ' ' .. port, P .. 'moving:' .. tree(id)
  if not edges or not edges.moving then
    call('SREM', all, name)
    recheck[id] = load(id).graph or nil
    return rested(load(id))
  end
  local k, field = key(id), dir .. '.' .. port
  local list = k .. ':' .. dir .. ':' .. port
  local items = batch(list, 0, fanout.piece(fanout.wide(edges)))
  local over = call('LLEN', list) == #items
  if over then
    call('HSET', k, field, (string.gsub(call('HGET', k, field), MOVING, '')))
    call('SREM', all, name)
    edges.moving = false
  else
    chore('move', name)
  end
  if #items > 0 then
    call('LTRIM', list, #items, -1)
    along(id, dir, port, edges, items)
  end
  if over and closed(id, dir, port) then
    call('HDEL', k, 'x.' .. field)
    finish(id, dir, port)
  end
  if over then
    recheck[id] = load(id).graph or nil
    rested(load(id))
  end
end
