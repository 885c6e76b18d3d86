-- retain.lua: when jobs that have settled are to be removed. The sorted set `retained` holds those, scored with the time; the
-- member !retain of `due` reminds the sweeper of the first. What comes to life before stays there: it is looked at then.

-- The table `retain`, as Lua allows few local names, comes with the state machine's: what namespaces have by default, and
-- `soon`: a time that is more milliseconds away is not in `due`, which costs the sweeper a look again and again: it reads the
-- first of `retained` in time. `first` is for how long a root is kept at least whose first message may be on its way.

-- remind has the sweeper look at what is past its retention at a time (ms), if it does not before.
function retain.remind(at)
  if at <= NOW + retain.soon then call('ZADD', P .. 'due', 'LT', str(at), '!retain') end
end

-- default is for how long (ms) what has ended is kept, or has failed, or nil: for good.
function retain.default(how)
  retain.known = retain.known or {}
  if retain.known[how] == nil then
    retain.known[how] = tonumber(call('HGET', P .. 'retention', how) or retain[how]) or false
  end
  return retain.known[how] or nil
end

-- at has a job removed at a time (ms), unless it has come to life by then.
function retain.at(id, at)
  call('ZADD', P .. 'retained', str(at), id)
  retain.remind(at)
end

-- forget takes a job that is deleted, which is a root or not, out of what is to be removed.
function retain.forget(id, root)
  if root then call('ZREM', P .. 'kept', id) end
  if call('ZREM', P .. 'retained', id) == 1 and call('EXISTS', P .. 'retained') == 0 and call('EXISTS', P .. 'expired') == 0 then
    call('ZREM', P .. 'due', '!retain')
  end
end

-- orphaned tells whether a job goes with one that is being removed, or is: it is below it.
function retain.orphaned(id, removed)
  local up = load(id).parent
  while up and tree(up) == tree(id) do
    if up == removed or load(up).status == '' then return true end
    up = load(up).parent
  end
  return false
end

-- span is for how long (ms) a job is kept that has settled, or nil: until it is deleted, or the tree that it is part of goes;
-- who is told of that, or false; and until when it is kept at least, as it has a unique key.
function retain.span(j)
  local v = call('HMGET', key(j.id), 'retain', 'tell', 'window')
  local own, tell, window = v[1], v[2], tonumber(v[3] or '0')
  if own and (own ~= 'release' or j.parent) then return tonumber(own), tell, window end
  if j.parent then return nil, tell, window end
  local how = j.status == S.failed and S.failed or 'ended'
  return retain.default(how), tell, window
end

-- ends tells when (ms) a job with these fields is past its retention; 'kept' of one that is, and holds unread messages; ''
-- of one that has none.
function retain.ends(id, fields)
  if fields.parent ~= '' and fields.retain == '' then return '' end
  local at = call('ZSCORE', P .. 'retained', id)
  return at and str(tonumber(at)) or call('ZSCORE', P .. 'kept', id) and 'kept' or ''
end

-- read notes that messages of a job were read, or dropped: its tree may be kept for them, and its time begins anew then.
function retain.read(id)
  local root = tree(id)
  if call('ZREM', P .. 'kept', root) == 1 then retain.settled(load(root)) end
end

-- over tells whether a job has settled, or failed.
function retain.over(status) return SETTLED[status] or status == S.failed end

-- unfed tells whether the first message of a root may still be on its way: one In port is open at least, and none has ever
-- held any.
function retain.unfed(j)
  if j.parent or j.graph or j.status ~= S.completed then return false end
  local k, open = key(j.id), false
  for _, field in ipairs(call('HKEYS', k)) do
    local port = string.match(field, '^i%.(.+)$')
    if string.sub(field, 1, 4) == 'h.i.' or port and call('EXISTS', k .. ':i:' .. port) == 1 then return false end
    open = open or port and port ~= '*' and call('HEXISTS', k, 'x.i.' .. port) == 0
  end
  return open
end

-- settled has a job removed in due time that has settled, if it is the root of a tree, or a child with a time of its own. If
-- it settles now, from another status, whoever is to know is told.
function retain.settled(j, from)
  if not retain.over(j.status) then return end
  local span, tell, window = retain.span(j)
  if span and span < retain.first and retain.unfed(j) then span = retain.first end
  if span then retain.at(j.id, math.max(NOW + span, window)) end
  if tell and from and from ~= j.status then retain.told(j, tell) end
end

-- seen has those children removed that are to be released, and whose end a run was told of: names are taken from what
-- woke the job when the run is committed.
function retain.seen(d)
  local k = key(d.id)
  local names = d.woken > 0 and call('ZRANGEBYSCORE', k .. ':w', '-inf', str(d.woken)) or {}
  for i = 1, #d.looked, 2 do
    if call('ZSCORE', k .. ':w', d.looked[i]) == d.looked[i + 1] then names[#names + 1] = d.looked[i] end
  end
  for i = 1, #names, CHUNK do
    for _, id in ipairs(call('HMGET', k .. ':c', unpack(names, i, math.min(i + CHUNK - 1, #names)))) do
      local v = id and call('HMGET', key(id), 'retain', 'status')
      if v and v[1] == 'release' and retain.over(v[2]) then
        retain.at(id, NOW)
        urgent['!retain'] = true
      end
    end
  end
end

-- released has those children removed that their parent lets go: they are as if they had been spawned so.
function retain.released(d)
  for i = 1, #d.released, CHUNK do
    for _, id in ipairs(call('HMGET', key(d.id) .. ':c', unpack(d.released, i, math.min(i + CHUNK - 1, #d.released)))) do
      local status = id and call('HGET', key(id), 'status')
      if status then
        call('HSET', key(id), 'retain', 'release')
        if retain.over(status) then
          retain.at(id, NOW)
          urgent['!retain'] = true
        end
      end
    end
  end
end

-- pieces leaves work to whoever removes what is past its retention, that is too long for one script.
function retain.pieces(list)
  if #list == 0 then return end
  for i = 1, #list, CHUNK do call('RPUSH', P .. 'expired', unpack(list, i, math.min(i + CHUNK - 1, #list))) end
  retain.remind(NOW)
  urgent['!retain'] = true
end
