-- quiesce.lua: ending feedback: when nothing in a graph moves any more.

-- at_rest tells whether nothing happens to a member of a graph by itself.
local function at_rest(j)
  if j.status == '' or inactive(j) then return true end
  if j.status == S.failed then return not j.pgraph end -- it is its parent's affair
  if j.status ~= S.suspended and j.status ~= S.completed then return false end
  if j.graph then return call('HEXISTS', key(j.id), 'search') == 0 end -- whether its feedback ends is being looked at
  return not (j.blocked > 0 and j.again) and not call('ZSCORE', P .. 'due', '@' .. j.id)
end

-- done tells whether a job is woken by nobody: what those that it spawned do does not come to its graph.
local function done(j) return not j.graph and (j.status == S.failed or j.status == S.terminated) end

-- moving tells whether a job is a member of a graph, however deep, and not at rest.
local function moving(j, graph)
  if at_rest(j) then return false end
  while j.parent and tree(j.parent) == tree(graph) do
    if j.parent == graph then return true end
    j = load(j.parent)
    if done(j) then return false end
  end
  return false
end

-- still tells whether no member of a graph moves. Many members are looked at in pieces, by the chores, and twice: if all
-- were at rest both times, and none did anything between, they were all at rest at one time. at says where to go on.
local function still(graph, at)
  local k, todo = key(graph), at and at.todo or { graph .. ':0' }
  -- search returns a member that is not at rest, or nil and what those have done that it has looked at: some of those
  -- below the jobs of todo, each '<job>:<from>', which keeps the rest.
  local function search()
    local seen = {}
    while #todo > 0 and #seen < MANY do
      local id, from = string.match(table.remove(todo), '^(.*):(%d+)$')
      local page = call('HSCAN', key(id) .. ':c', from, 'COUNT', MANY)
      if page[1] ~= '0' then todo[#todo + 1] = id .. ':' .. page[1] end
      for n = 2, #page[2], 2 do
        local j = tree(page[2][n]) == tree(graph) and load(page[2][n]) -- else adopted
        if j and not at_rest(j) then return j.id end
        if j then seen[#seen + 1] = j.id .. ' ' .. str(j.touched) .. ' ' .. str(j.version) end
        if j and not done(j) and call('EXISTS', key(j.id) .. ':c') == 1 then todo[#todo + 1] = j.id .. ':0' end
      end
    end
    return nil, table.concat(seen, ' ')
  end
  local id, seen = search()
  if id then
    call('HSET', k, 'mover', id)
    return false
  end
  if not at and #todo == 0 then return true end
  local before, digest = at and at.before or '-', redis.sha1hex((at and at.digest or '') .. seen)
  if #todo == 0 then
    if digest == before then return true end
    before, digest, todo = digest, '', { graph .. ':0' }
  end
  call('HSET', k, 'search', str(NOW))
  chore('quiesce', table.concat({ graph, before, table.concat(todo, ','), digest, LIFE }, ' '), true)
  return false
end

-- quiescent tells whether nothing in a graph moves any more, nor can come into it. Looking at all members is dear: the
-- one that moved when this was done last is looked at before, and those that this call woke.
local function quiescent(graph, at)
  for _, j in ipairs(ready) do
    if moving(j, graph) then return false end
  end
  for _, field in ipairs(call('HKEYS', key(graph))) do
    local port = string.match(field, '^i%.([%w_]+)$')
    if port and not closed(graph, 'i', port) then return false end
  end
  local last = call('HGET', key(graph), 'mover')
  if last and moving(load(last), graph) then return false end
  return still(graph, at)
end

-- moves_on tells whether messages that a port of a graph kept are being moved on, or its end to very many.
local function moves_on(graph)
  for _, what in ipairs({ { 'SMEMBERS', 'moving:' }, { 'HKEYS', 'closing:' } }) do
    for _, port in ipairs(call(what[1], P .. what[2] .. tree(graph))) do
      local j = load(string.match(port, '^%S+'))
      while j.id ~= graph and j.pgraph do j = load(j.parent) end
      if j.id == graph then return true end
    end
  end
end

-- end_feedback closes the ports of a quiescent graph that only feedback could still feed. at is where a search by the
-- chores goes on; while one does there is no other.
local function end_feedback(graph, at)
  local idle, since = key(graph) .. ':l', not at and call('HGET', key(graph), 'search')
  if since and NOW - tonumber(since) < 30 * LOOK or call('EXISTS', idle) == 0 then return end
  if moves_on(graph) or not quiescent(graph, at) then return end
  local ports = call('SMEMBERS', idle)
  call('DEL', idle)
  for _, who in ipairs(ports) do
    local id, port = string.match(who, '^(%S+) (%S+)$')
    call('HDEL', key(id), 'f.i.' .. port)
    finish(id, 'i', port)
  end
end

-- nested returns graphs, the innermost first.
local function nested(graphs)
  local depth, out = {}, {}
  for graph in pairs(graphs) do
    local path, j = {}, load(graph)
    while not depth[j.id] do
      path[#path + 1] = j.id
      if not j.pgraph then break end
      j = load(j.parent)
    end
    for n = #path, 1, -1 do
      depth[path[n]] = (depth[j.id] or 0) + 1
      j = load(path[n])
    end
    out[#out + 1] = graph
  end
  table.sort(out, function(a, b) return depth[a] > depth[b] or depth[a] == depth[b] and a < b end)
  return out
end

-- quiesce ends the feedback in every graph that may have become quiescent: one of those that it is within waits for
-- what its end brings about. The graphs are noted in recheck by whatever may make one quiescent: finish, which closes its inputs
-- or leaves a port to feedback alone, a member that comes to rest or is disowned, and a patch.
function quiesce()
  while next(recheck) do
    local graphs = nested(recheck)
    recheck = {}
    for _, graph in ipairs(graphs) do end_feedback(graph) end
  end
end

-- rested notes that a member of graphs came to rest.
local function rested(j)
  while j.pgraph do
    j = load(j.parent)
    recheck[j.id] = true
  end
end

-- parting notes that a job, which may move, and all below it are to be no members any more of the graphs above.
local function parting(j)
  while j.parent and tree(j.parent) == tree(j.id) do
    j = load(j.parent)
    if j.graph then recheck[j.id] = true end
  end
end
