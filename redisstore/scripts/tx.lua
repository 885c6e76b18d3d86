-- tx.lua: transactions of job deltas: whether they hold, and making them true.

-- lacking is why a delta does not hold that needs a port.
local function lacking(p, why) return (why or 'port') .. ' ' .. p.id .. ' ' .. p.dir .. ' ' .. p.port end

-- unwritable tells why one of some writes cannot be done, or nil.
local function unwritable(d, writes)
  for _, w in ipairs(writes) do
    local fields = d.fresh[w.id]
    if fields then
      if not fields[w.dir .. '.' .. w.port] and not fields[w.dir .. '.*'] then return lacking(w) end
    elseif tree(w.id) == tree(d.id) then
      if load(w.id).status == '' then return 'moved' end -- a child that was deleted: the next run does not find it
      if not wires(w.id, w.dir, w.port) then return lacking(w) end
      if w.id ~= d.id and closed(w.id, w.dir, w.port) then return lacking(w, 'closed') end
    end
  end
end

-- refuse tells why a delta does not hold, and of what port or child, or nil. It writes nothing.
local function refuse(d)
  local j = load(d.id)
  if j.status == '' then return 'gone' end
  if j.token ~= d.token then return 'fenced' end
  if j.moved and not d.handed then return 'moved' end -- a patch opened an input that the run may have seen the end of
  if d.outcome ~= 'checkpoint' and j.status ~= S.terminating and not (EV[d.outcome] or {})[j.status] then
    return j.status
  end
  local taken = {}
  for _, t in ipairs(d.takes) do
    local name = t.id .. ' ' .. t.dir .. ' ' .. t.port
    if load(t.id).status == '' then return 'moved' end
    local edges = not taken[name] and wires(t.id, t.dir, t.port)
    if not edges then return lacking(t) end
    taken[name], t.limit = true, edges.limit
    if (call('HGET', key(t.id), 'h.' .. t.dir .. '.' .. t.port) or '0') ~= t.head then return 'moved' end
    local seen = d.guess and t.id == d.id and t.dir == 'i' and t.port == d.guess.port and d.guess.seen -- by enter
    if (seen or call('LLEN', key(t.id) .. ':' .. t.dir .. ':' .. t.port)) < t.n then return 'moved' end
  end
  local why = d.to and unwritable(d, { d.to })
  for _, p in ipairs(d.parts) do why = why or unwritable(d, p.writes) end
  if why then return why end
  for _, port in ipairs(d.closes) do
    if not wires(d.id, 'o', port) then return lacking({ id = d.id, dir = 'o', port = port }) end
  end
  for _, v in ipairs(d.defaults) do
    if tree(v.id) ~= tree(d.id) or not d.fresh[v.id] and not wires(v.id, v.dir, v.port) then return lacking(v) end
  end
  local values = weight(d)
  if values > MOST then return 'large ' .. str(values) end
  local asked = 0
  for _, after in ipairs(d.wakes) do
    if after >= 0 then asked = asked + 1 end -- others are an engine's own: there is one at most
  end
  if not alarms(d.id, asked) then return 'timers' end
  if d.twice or doubled(d.ids) then return 'moved' end
  local names = {}
  for _, name in ipairs(d.names) do
    if names[name] or call('HEXISTS', key(d.id) .. ':c', name) == 1 then return 'exists ' .. d.id .. ' ' .. name end
    names[name] = true
  end
end

-- through tells whether a job that is to complete has seen all that came to its In ports: those that feed them have ended, and
-- nothing is left there; and no child woke it that no run was told of. A run whose beginning was answered twice has seen more
-- than when it was noted that it began.
local function through(j)
  local k, lists, all, fed = key(j.id), {}, {}, false
  local fields = call('HGETALL', k)
  for i = 1, #fields, 2 do all[fields[i]] = fields[i + 1] end
  for name, value in pairs(all) do
    local port = string.match(name, '^i%.([%w_]+)$')
    if port and not string.find(value, ' ', 1, true) then
      lists[#lists + 1] = k .. ':i:' .. port
      fed = fed or all['n.i.' .. port]
      if all['n.i.' .. port] and all['x.i.' .. port] ~= '1' then return false end
    end
  end
  return fed and #lists < CHUNK and call('EXISTS', k .. ':w', unpack(lists)) == 0
end

-- conclude gives the job its status after the run.
local function conclude(d, j)
  local event, at = d.outcome, nil
  if d.delay > 0 or event == 'backoff' then at = NOW + d.delay end
  if j.status == S.terminating then
    if event ~= 'shutdown' then return place(j, j.status, at) end
    free_all(j)
    if j.pgraph then silence(j) end
    return place(j, EV.shutdown[j.status])
  end
  if j.again and j.again ~= 'kin' then
    if call('HDEL', key(j.id), 'must') == 0 and event == 'complete' and through(j) then
      j.again = false
      call('HSET', key(j.id), 'again', '0')
    end
  end
  if j.again and (event == 'complete' or event == 'suspend' or event == 'reschedule') then event = 'requeue' end
  if event == 'reschedule' then event, at = repeats.on(d, j) end
  if event == 'fail' and ignored(j) then
    free_all(j)
    silence(j)
  end
  if event == 'requeue' and j.blocked > 0 then
    j.again = true
    call('HSET', key(j.id), 'again', '1')
    event, at = 'suspend', nil
  end
  if event == 'suspend' and j.blocked > 0 then
    call('HSET', key(j.id), 'reason', call('HGET', key(j.id), 'jam'))
  end
  place(j, EV[event][j.status], at)
end

-- enter begins the run of a delta that was made on a guess: that the delta before it wakes the
-- job, which sleeps, and that nothing else happened to it since it was seen. It returns why
-- the delta does not hold, or nil, and writes nothing then.
local function enter(d)
  local j, g = load(d.id), d.guess
  if not j.woken or j.token then return 'moved' end
  if g.closed == 1 and not closed(d.id, 'i', g.port) then return 'moved' end -- closing it is one touch
  if j.version ~= g.version or j.touched ~= g.touched + g.closed or (j.last or '') ~= g.last then return 'moved' end
  local k = key(d.id)
  local rate = entered(j, d.runs, g.limit)
  if not rate or call('LLEN', k .. ':i:' .. g.port) ~= g.seen or call('EXISTS', k .. ':lock', k .. ':w') > 0 then
    return 'moved' -- of a child that woke it, it was not told
  end
  local asleep = j.status
  j.token, j.status = d.token, EV.begin[EV.wake[asleep]]
  local why = refuse(d)
  if why then
    j.token, j.status = false, asleep
    return why
  end
  j.woken, j.again, j.slept = nil, false, true -- for place: it was never queued
  d.rate = rate
  for _, status in ipairs({ EV.wake[asleep], j.status }) do
    j.status = status
    tell(j)
  end
end

-- apply makes a delta true. The caller has checked it.
local function apply(d)
  local j = load(d.id)
  local failed = d.outcome == 'fail' or d.outcome == 'backoff'
  local step, tries = j.step, j.tries
  if failed then
    tries = tries + 1
  elseif not d.handed then
    step = step + d.runs
    if d.outcome ~= 'checkpoint' then tries = 0 end -- the run may yet fail
  end
  j.last, j.step, j.tries, j.version = d.last, step, tries, j.version + 1
  j.token = d.next ~= '' and d.next
  local rate = pace(d, j)
  local fields = { 'last', d.last, 'token', places.mark(j, d.next), 'step', str(step), 'tries', str(tries),
    'version', str(j.version), 'reason', d.reason }
  local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
  if d.guess then add('ran', MOMENT) end -- it begins only now
  if rate ~= j.rate then add('rate', rate) end
  j.rate = rate
  if d.single ~= '' then add('single', d.single) end
  if d.started then add('started', '1') end
  if d.far ~= '' then add('progress', d.far) end
  if d.type then
    j.type = d.type
    add('type', d.type)
    add('written', d.written)
  end
  call('HSET', key(d.id), unpack(fields))
  writer = d.id
  record(d)
  writer = nil
  if d.nspawn > 0 and call('HGET', key(d.id), 'ending') == '1' then
    for id in pairs(d.fresh) do terminate(id, true) end
  end
  if j.token then
    call('ZADD', P .. 'due', str(NOW + d.lease), d.id)
    return
  end
  if j.placed then places.over(j) end
  conclude(d, j)
  if j.loop and j.status ~= S.queued then rested(j) end
  if j.parent and not j.pgraph and not d.handed then wake(j.parent, d.id) end
end

-- recounted writes the counts that a transaction has changed.
local function recounted()
  for _, g in pairs(counted) do count(g) end
  counted = nil
end

-- transact applies the deltas of a transaction, in order, up to the first that no longer holds,
-- and returns {deltas that hold, why the next does not or '', whether the last job of them is
-- queued again, whether it found a port full, and how many more messages fit where it wrote}, and
-- that job. A delta that an earlier sending applied holds already.
local function transact(deltas)
  local held, why, again, blocked, last = 0, '', 0, 0, nil
  space, counted = -1, {}
  for i, d in ipairs(deltas) do
    if why == '' then
      local j = load(d.id)
      if j.status == '' or j.last ~= d.last then
        local reason
        if d.guess then reason = enter(d) else reason = refuse(d) end
        if reason then
          why = reason
          if j.woken then -- it runs the usual way
            j.woken = nil
            place(j, EV.wake[j.status])
          end
        else
          local after = deltas[i + 1]
          guessed = after and after.guess and not j.loop and after.id ~= d.id and after.id
          apply(d)
          guessed = nil
        end
      else
        j.repeated = true
      end
      if why == '' then
        held, last = held + 1, j
      end
    end
  end
  quiesce()
  if last then again, blocked = last.status == S.queued and 1 or 0, last.blocked end
  recounted()
  return { held, why, again, blocked, space }, last
end
