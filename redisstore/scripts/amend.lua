-- amend.lua: changing what a job was created with: its args, its priority, its name.

local amend = {} -- as Lua allows few local names

-- version gives a job what its new args, which a version of its type wrote, ask of an engine, besides what its state does.
function amend.version(j, version)
  local k, base, before = key(j.id), line.base(j.type), string.match(j.type, '@(%d*)')
  if version == 1 and not before then return end
  local state = string.match(call('HGET', k, 'written') or '', ',(%d+)$') or before
  local wrote = tonumber(state or '') or 1
  if call('EXISTS', k .. ':s') == 0 then wrote = version end
  local most = math.max(version, wrote)
  j.type = most > 1 and base .. '@' .. str(most) or base -- who could not decode the old args may try the new ones
  call('HSET', k, 'type', j.type, 'written', str(version) .. ',' .. str(wrote))
end

-- args gives a job other args, which a version of its type wrote. A run in progress goes on with those that it has.
function amend.args(j, args, version)
  if j.listed then -- in the ready set of another version, perhaps
    line.leave(j)
    ready[#ready + 1] = j
  end
  if j.status == S.queued then places.release(j.id) end -- limits may be by an argument
  call('HSET', key(j.id), 'args', args)
  amend.version(j, version)
  touch(j.id)
end

-- cut takes a job away from a run in progress, if there is one: whatever that still does is refused. That it began is kept,
-- as if it had died, but does not count as that.
function amend.cut(j)
  if j.token and not string.find(call('HGET', key(j.id), 'deaths') or '', '^' .. str(j.version) .. ':') then
    call('HSET', key(j.id), 'deaths', str(j.version) .. ':0')
  end
  j.token = false
  if j.placed then places.over(j) end
end

-- quiet takes timers of a job away that end up to a time (ms): it is not to run before.
function amend.quiet(j, at)
  local k = key(j.id) .. ':t'
  if call('ZREMRANGEBYSCORE', k, '-inf', str(at)) == 0 then return end
  local next = call('ZRANGE', k, 0, 0)[1]
  if next then call('ZADD', P .. 'due', next, '@' .. j.id) else call('ZREM', P .. 'due', '@' .. j.id) end
end

-- priority gives a job a priority, which it takes on at once if it is ready, or waits for a place of a limit.
function amend.priority(j, priority)
  places.rerank(j.id, j.priority - tonumber(priority))
  j.priority = tonumber(priority)
  call('HSET', key(j.id), 'priority', priority)
  if j.listed and call('ZSCORE', line.set(j.queue, j.type), j.id) then line.enter(j) end
end

-- unnameable tells why a job may not get a name, or nil: nodes of graphs keep theirs, children of one parent have different
-- ones, and those of a parent in another tree are named there.
function amend.unnameable(j, name)
  if j.pgraph then return 'node' end
  if not j.parent then return nil end
  if tree(j.parent) ~= tree(j.id) then return 'adopted' end
  local holder = call('HGET', key(j.parent) .. ':c', name)
  if holder and holder ~= j.id then return 'exists ' .. j.parent .. ' ' .. name end
end

-- name gives a job a name that it may have. Its parent knows the child that woke it by its name.
function amend.name(j, name)
  local old = call('HGET', key(j.id), 'name') or ''
  call('HSET', key(j.id), 'name', name)
  if not j.parent or old == name then return end
  local k = key(j.parent)
  call('HDEL', k .. ':c', old)
  call('HSET', k .. ':c', name, j.id)
  local woke = call('ZSCORE', k .. ':w', old)
  if woke then
    call('ZREM', k .. ':w', old)
    call('ZADD', k .. ':w', woke, name)
  end
end
