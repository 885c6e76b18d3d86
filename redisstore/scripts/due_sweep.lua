-- due_sweep: put right what is past due in one shard.
-- KEYS: due
-- ARGV: most jobs to look at
-- reply: {jobs acted on, {what is left}, when the next is due (ms) or -1, {job, queue, type, … of those ready for long}}

-- died counts runs since the last commit that ended without a word, and returns until when (ms) the job is left alone, if there
-- were several: it may be what kills the processes; and whether the run was lent: one that was is counted apart.
local function died(j)
  local lent = j.token and call('HGET', key(j.id), 'lent') == j.token
  local field = lent and 'lapses' or 'deaths'
  local version, before = string.match(call('HGET', key(j.id), field) or '', '^(%d+):(%d+)$')
  local n = tonumber(version) == j.version and tonumber(before) + 1 or 1
  call('HSET', key(j.id), field, str(j.version) .. ':' .. str(n))
  if lent or n < 3 then return nil, lent end
  call('HSET', key(j.id), 'reason', 'its last ' .. str(n) .. ' runs ended without a word: their processes died, or were cut off')
  return NOW + math.min(LOOK * 2 ^ (n - 3), 60 * LOOK)
end

-- apart returns for how many ms a ready job is left alone, the nth part of those that are due: the longer it has been ready
-- the longer, and the longer the more of its type are, at different times. A look at any of them rings the bell for all, and
-- there may be millions. One that is to end is looked at for itself, too: it may end without an engine that has its type.
local crowds, LOST = {}, '{"lost":"a run whose process died, or was cut off"}'
local function apart(j, nth)
  local age, set = NOW - tonumber(j.record and j.queued or call('HGET', key(j.id), 'queued') or '0'), line.set(j.queue, j.type)
  local span = math.min(math.max(LOOK, age), (FULL and 5 or 30) * LOOK)
  if j.status == S.terminating then return span end
  crowds[set] = crowds[set] or call('ZCARD', set)
  return math.max(span, nth * math.min(crowds[set] / 10, 20) * LOOK) * math.max(1, crowds[set] / CHUNK)
end
probe()
local late, again, ids = {}, {}, call('ZRANGEBYSCORE', KEYS[1], '-inf', str(NOW), 'LIMIT', 0, num())
compact.meet(ids)
for n, id in ipairs(ids) do
  local first = string.sub(id, 1, 1)
  local j = first ~= '!' and first ~= '@' and compact.queued(id) or load(first == '@' and string.sub(id, 2) or id)
  if first == '!' then
    local what, rest, producer = string.match(id, '^!(%l+) ((%S+).*)$')
    if what == 'unborn' then
      call('ZREM', KEYS[1], id)
      unborn(rest)
    elseif places.looks[what] then
      places.looks[what](rest)
    elseif what == 'full' and load(producer).blocked == 0 then
      call('ZREM', KEYS[1], id)
    elseif what == 'full' then
      local age = NOW - tonumber(call('HGET', key(producer), 'ran') or '0') -- those that ran lately may be jammed anew
      call('ZADD', KEYS[1], str(NOW + math.min(math.max(LOOK, age), 5 * LOOK)), id)
      local consumer = string.match(id, '^!full %S+ (%S+)')
      if EV.wake[load(producer).status] and EV.wake[load(consumer).status] and not call('ZSCORE', KEYS[1], '@' .. consumer) then
        urgent[id] = true -- both sleep, and no timer will wake the consumer
      end
    else
      call('ZADD', KEYS[1], str(NOW + LOOK), id)
      urgent[id] = true
    end
  elseif first == '@' then
    ring(j)
  elseif j.token or j.status == S.running then
    local rest, lent = died(j)
    j.token = false -- the run outlived its lease: whatever it still does is refused
    call('HSET', key(id), 'token', '')
    if j.placed then places.over(j) end
    place(j, EV.recover[j.status] or j.status, rest)
    if not lent and not FULL then note(id, LOST) end -- last: a log that somebody has damaged keeps no job from going on
  elseif j.status == S.queued or j.status == S.terminating then
    again[#again + 1], again[#again + 2] = str(NOW + apart(j, n / #ids)), id
    if not FULL or j.status == S.terminating then -- others may not begin
      late[#late + 1], late[#late + 2], late[#late + 3] = id, j.queue, j.type
      line.enter(j)
      line.ring(j.queue, j.type)
    end
  elseif EV.due[j.status] then
    place(j, EV.due[j.status])
  else
    call('ZREM', KEYS[1], id)
  end
end
if #again > 0 then call('ZADD', KEYS[1], unpack(again)) end
local head = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { #ids, wakes(), str(tonumber(head[2] or '-1')), late }
