-- serial.lua: sequential keys. Of the trees that were started with one key, one is active at a time, in the order in which they
-- were created. They lie in one shard: its hash `keys` has the root that holds each key, and the sorted set `key:<key>` those
-- that wait for it, scored with their number: `sequence` counts them all. A tree holds its key from when it may begin until
-- its root is completed, failed, terminated or deleted; the script that does that gives the key to the next.

-- serial.take gives a root its key and returns true, unless another one holds it: then it waits.
function serial.take(j)
  local number = call('HGET', key(j.id), 'sequence')
  if not number then
    number = str(call('INCR', P .. 'sequence'))
    call('HSET', key(j.id), 'sequence', number)
  end
  local holder = call('HGET', P .. 'keys', j.key)
  if holder and holder ~= j.id then
    call('ZADD', P .. 'key:' .. j.key, number, j.id)
    return false
  end
  call('HSET', P .. 'keys', j.key, j.id)
  return true
end

-- serial.leave takes a root, which is over or is to end, away from its key. If it held that, the next one has it.
function serial.leave(j)
  local waits = P .. 'key:' .. j.key
  if call('HGET', P .. 'keys', j.key) ~= j.id then return call('ZREM', waits, j.id) end
  for _ = 1, MANY do -- the first is waiting, unless somebody has damaged it
    local next = call('ZRANGE', waits, 0, 0)[1]
    if not next then return call('HDEL', P .. 'keys', j.key) end
    call('ZREM', waits, next)
    call('HSET', P .. 'keys', j.key, next)
    if load(next).status == S.waiting then return serial.begin(load(next)) end
  end
end

-- serial.begin lets a root go on that has got its key. The jobs of a graph follow as a background task, which also sees
-- whether any is left to run.
function serial.begin(j)
  local to, at = EV.key_free[j.status], tonumber(call('HGET', key(j.id), 'start') or '0')
  if j.graph then
    place(j, EV.suspend[EV.begin[to]])
    chore('enter', j.id, true)
  elseif at > NOW then
    place(j, EV.backoff[EV.begin[to]], at)
  else
    place(j, to)
  end
end

-- serial.changed follows a root to another status, and returns the one that it gets: one that was over and is to be active
-- again needs its key anew.
function serial.changed(j, to)
  local from = j.status
  local ends = retain.over(to) or to == S.terminating and from == S.waiting
  if retain.over(from) and not ends and to ~= S.terminating and not serial.take(j) then return EV.key_held[S.queued] end
  return to, ends
end

-- serial.below tells whether a job is created below a root that waits for its key.
function serial.below(id)
  local root = jobs[tree(id)]
  return root and root.status == S.waiting
end

-- serial.hold keeps a job of a graph that waits for its key from running, and returns whether it is one.
function serial.hold(j)
  local root = tree(j.id)
  if j.status ~= S.queued or load(root).status ~= S.waiting then return false end
  if j.listed then line.leave(j) end
  call('RPUSH', key(root) .. ':held', j.id .. ' ' .. j.status .. ' ')
  place(j, EV.key_held[j.status])
  return true
end
