-- limited.lua: who waits for a place of a limit, by queue. The sorted set `limited:<queue>` has the jobs of the shard that do,
-- scored with since when they are ready: from when a job is told to wait until it has its place, or gives up its claim. Who
-- waits looks again each minute, and is put there if it is missing; the sweeper looks each minute for those that do not wait
-- any more. So the sets come right again where programs of an older version work beside, which do not know them.

local LIMITED = 200 -- jobs that one look of the sweeper is at

function places.waiting(queue) return P .. 'limited:' .. queue end

-- wait has a job wait for the place that it has claimed.
function places.wait(j)
  j.waits = true
  call('ZADD', places.waiting(j.queue), 'NX', call('HGET', key(j.id), 'queued') or str(NOW), j.id)
  call('ZADD', P .. 'due', 'NX', str(NOW + 60 * LOOK), '!limited ' .. j.queue)
end

-- left says that a job does not wait any more.
function places.left(j)
  local set = places.waiting(j.queue)
  if call('ZREM', set, j.id) == 1 and call('EXISTS', set) == 0 then call('ZREM', P .. 'due', '!limited ' .. j.queue) end
end

-- unclaim takes back the claim of a job that holds other places, or none, and waits no more for that one.
function places.unclaim(j)
  local home, name = string.match(call('HGET', key(j.id), 'claim') or '', '^(%d+) (.*)$')
  if not home then return end
  call('HSET', key(j.id), 'claim', '')
  places.left(j)
  places.send(home, 'freed', name, places.who(j.id))
end

-- idle takes back what a ready job that nobody will begin holds and claims.
function places.idle(j)
  local v = call('HMGET', key(j.id), 'place', 'claim')
  if v[2] and v[2] ~= '' then call('HSET', key(j.id), 'reason', '') end -- it said that it waits for a place
  if v[1] or v[2] then places.release(j.id) end
end

-- waits tells whether a job waits for a place in a queue.
function places.waits(id, queue)
  local v = call('HMGET', key(id), 'claim', 'status', 'queue')
  return v[1] and v[1] ~= '' and v[2] == S.queued and v[3] == queue
end

-- recount takes those out of the first of a queue that do not wait: soon again, if these were many.
function places.recount(queue)
  local set, gone = places.waiting(queue), {}
  for _, id in ipairs(call('ZRANGE', set, 0, LIMITED - 1)) do
    if not places.waits(id, queue) then gone[#gone + 1] = id end
  end
  if #gone > 0 then call('ZREM', set, unpack(gone)) end
  if call('EXISTS', set) == 0 then return call('ZREM', P .. 'due', '!limited ' .. queue) end
  call('ZADD', P .. 'due', str(NOW + (#gone > LIMITED / 2 and 1 or 60) * LOOK), '!limited ' .. queue)
end

-- looks are what the sweeper does by entries of `due`: '!rate <limit>' and '!limited <queue>'.
places.looks = { rate = places.look, limited = places.recount }
