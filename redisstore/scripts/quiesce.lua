-- quiesce.lua: ending feedback: when nothing in a graph moves any more.

-- at_rest tells whether nothing happens to a member of a graph by itself.
local function at_rest(j)
  if j.status == '' or inactive(j) then return true end
  if j.status == S.failed then return not j.pgraph end -- it is its parent's affair
  if j.status ~= S.suspended and j.status ~= S.completed then return false end
  return not (j.blocked > 0 and j.again) and (j.graph or not call('ZSCORE', P .. 'due', '@' .. j.id))
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

-- mover returns a member of a graph that is not at rest, or nil.
local function mover(graph)
  local todo = { graph }
  while #todo > 0 do
    for _, id in ipairs(call('HVALS', key(table.remove(todo)) .. ':c')) do
      if tree(id) == tree(graph) then -- else adopted
        local j = load(id)
        if not at_rest(j) then return id end
        if not done(j) then todo[#todo + 1] = id end
      end
    end
  end
end

-- quiescent tells whether nothing in a graph moves any more, nor can come into it. Looking at all members is dear: the
-- one that moved when this was done last is looked at before, and those that this call woke.
local function quiescent(graph)
  for _, j in ipairs(ready) do
    if moving(j, graph) then return false end
  end
  for _, field in ipairs(call('HKEYS', key(graph))) do
    local port = string.match(field, '^i%.([%w_]+)$')
    if port and not closed(graph, 'i', port) then return false end
  end
  local last = call('HGET', key(graph), 'mover')
  if last and moving(load(last), graph) then return false end
  local id = mover(graph)
  if id then call('HSET', key(graph), 'mover', id) end
  return not id
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

-- end_feedback closes the ports of a quiescent graph that only feedback could still feed.
local function end_feedback(graph)
  local idle = key(graph) .. ':l'
  if call('EXISTS', idle) == 0 or moves_on(graph) or not quiescent(graph) then return end
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
