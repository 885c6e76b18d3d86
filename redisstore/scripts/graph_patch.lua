-- graph_patch: make a graph at work another one. Jobs that stay keep what they have.
-- KEYS: due
-- ARGV: graph, digest that it has, digest that it will have, token, entry of the log or '';
--       jobs to remove, job…;
--       jobs that stay, of each: job, version of its args, what it subscribes to, defaults, In port, value, …, fields, field,
--       value, …;
--       Go types of messages; ports that change theirs, of each: job, direction, port, '1' if it is converted, head,
--       messages, message…;
--       new jobs, of each what create_next() in plan.lua reads;
--       ports, of each: job, direction, port, sources, then of each: job, direction, port
-- reply: {'ok' | 'gone' | 'stale' | 'ended' | 'busy', {ready jobs}, the job that is busy}, or {'typed', {}, which port changes
--        its type, how many messages it holds}
local root, from, to, token, entry = arg(), arg(), arg(), arg(), arg()
local g = load(root)
if g.status == '' then return { 'gone', {}, '' } end
if repeated(token) then return { 'ok', {}, '' } end
if (call('HGET', key(root), 'def') or '') ~= from then return { 'stale', {}, '' } end
if g.status == S.terminating or g.status == S.terminated then return { 'ended', {}, '' } end

local remove, stay = list(), {}
for i = 1, num() do
  local s = { id = arg(), version = num(), subscribed = arg(), defaults = list(), values = list(), keep = {} }
  for n = 1, #s.values, 2 do s.keep[s.values[n]] = true end
  stay[i] = s
end
for _, id in ipairs(remove) do
  local j = load(id)
  local spawned = not j.graph and call('EXISTS', key(id) .. ':c') == 1
  if j.token or j.status == S.queued or spawned or holds(id, {}) then return { 'busy', {}, id } end
end
for _, s in ipairs(stay) do
  if holds(s.id, s.keep) then return { 'busy', {}, s.id } end
end
local types, retyped = arg(), {}
for i = 1, num() do
  retyped[i] = { id = arg(), dir = arg(), port = arg(), convert = arg() == '1', head = arg(), items = list() }
end
for i, r in ipairs(retyped) do
  local why, n = unlike(r)
  if why then return { why, {}, i, n } end
end
local new = num()
local fresh_ids = ahead(new)
if doubled(fresh_ids) then return { 'stale', {}, '' } end

remember(token)
ended = -math.huge -- what is being closed is closed at once
for _, name in ipairs(call('HKEYS', P .. 'closing:' .. tree(root))) do close(string.match(name, '^(%S+) (%S+) (%S+)$')) end
ended = 0
for _, r in ipairs(retyped) do convert(r) end
patched(root, remove, stay)
for _ = 1, new do create_next() end
for _, id in ipairs(g.key and fresh_ids or {}) do
  load(id).key = g.key
  call('HSET', key(id), 'key', g.key)
end
if new > 0 then count_created(root, new) end
local ports = {}
for i = 1, num() do
  ports[i] = { id = arg(), dir = arg(), port = arg(), sources = {} }
  for n = 1, num() do ports[i].sources[n] = { arg(), arg(), arg() } end
end
local full_ports = kept(stay)
silenced(stay)
refeed(ports)
move_on(full_ports)
recount(root)
recheck[root] = true
for _, s in ipairs(stay) do recheck[s.id] = load(s.id).graph or nil end
call('HSET', key(root), 'def', to, 'messages', types)
by_hand(root, entry)
return { 'ok', wakes(), '' }
