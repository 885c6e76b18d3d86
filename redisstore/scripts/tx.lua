-- tx.lua: transactions of job deltas, shared by commit and step.

local NONE = {} -- a list that most deltas have several of

-- some returns how many entries of a list follow in ARGV, and the list for them.
local function some()
  local n = num()
  return n, n > 0 and {} or NONE
end

-- delta reads one delta from ARGV; large parts stay there and are kept as positions.
local function delta()
  local d = {
    id = arg(), token = arg(), outcome = arg(), delay = num(), next = arg(), lease = num(),
    flag = arg(), reason = arg(), single = arg(), takes = NONE, fresh = NONE, names = NONE, writes = NONE, ids = NONE,
    defaults = NONE, wakes = NONE,
  }
  d.handed, d.started = d.flag == '1', d.flag == '2'
  if string.byte(d.flag) == 51 then
    local version, touched, port, seen, limit, last = string.match(d.flag, '^3 (%d+) (%d+) (%S+) (%d+) (%d+) (.*)$')
    d.guess = {
      version = tonumber(version), touched = tonumber(touched), port = port, seen = tonumber(seen),
      limit = tonumber(limit), last = last,
    }
  end
  local count
  count, d.takes = some()
  for i = 1, count do
    d.takes[i] = { id = arg(), dir = arg(), port = arg(), head = arg(), n = num() }
  end
  d.nset = 2 * num()
  d.set = cursor
  cursor = cursor + d.nset
  d.nunset = num()
  d.unset = cursor
  cursor = cursor + d.nunset
  d.nspawn = num()
  if d.nspawn > 0 then d.fresh, d.names, d.ids = {}, {}, {} end
  d.spawn = cursor
  for _ = 1, d.nspawn do
    local n, fields = node(), {}
    for i = cursor + 2, cursor + 1 + tonumber(ARGV[cursor + 1]), 2 do fields[ARGV[i]] = true end
    d.twice = d.twice or d.fresh[n.id] -- Redis lost a number between the two
    d.fresh[n.id] = fields
    d.ids[#d.ids + 1] = n.id
    if n.parent == d.id then d.names[#d.names + 1] = n.name end
    skip()
  end
  count, d.writes = some()
  for i = 1, count do
    d.writes[i] = { id = arg(), dir = arg(), port = arg(), hash = tonumber(arg()), unlogged = arg() == '1', items = list() }
  end
  d.closes = list()
  count, d.defaults = some()
  for i = 1, count do d.defaults[i] = { id = arg(), dir = arg(), port = arg(), set = arg() == '1', value = arg() } end
  d.nports = num()
  d.ports = cursor
  if d.nports >= 0 then cursor = cursor + 1 + 3 * d.nports end
  d.entry = arg()
  d.failure = arg()
  d.log = list()
  count, d.wakes = some()
  for i = 1, count do d.wakes[i] = num() end
  return d
end

-- refuse tells why a delta does not hold, or nil. It writes nothing.
local function refuse(d)
  local j = load(d.id)
  if j.status == '' then return 'gone' end
  if j.token ~= d.token then return 'fenced' end
  if d.outcome ~= 'checkpoint' and j.status ~= S.terminating and not (EV[d.outcome] or {})[j.status] then
    return j.status
  end
  local taken = {}
  for _, t in ipairs(d.takes) do
    local name = t.id .. ' ' .. t.dir .. ' ' .. t.port
    local edges = not taken[name] and load(t.id).status ~= '' and wires(t.id, t.dir, t.port)
    if not edges then return 'port' end
    taken[name], t.limit = true, edges.limit
    if (call('HGET', key(t.id), 'h.' .. t.dir .. '.' .. t.port) or '0') ~= t.head then return 'moved' end
    if call('LLEN', key(t.id) .. ':' .. t.dir .. ':' .. t.port) < t.n then return 'moved' end
  end
  for _, w in ipairs(d.writes) do
    local fields = d.fresh[w.id]
    if fields then
      if not fields[w.dir .. '.' .. w.port] and not fields[w.dir .. '.*'] then return 'port' end
    elseif tree(w.id) == tree(d.id) and (load(w.id).status == '' or not wires(w.id, w.dir, w.port)
      or w.id ~= d.id and closed(w.id, w.dir, w.port)) then
      return 'port'
    end
  end
  for _, port in ipairs(d.closes) do
    if not wires(d.id, 'o', port) then return 'port' end
  end
  for _, v in ipairs(d.defaults) do
    if tree(v.id) ~= tree(d.id) or not d.fresh[v.id] and not wires(v.id, v.dir, v.port) then return 'port' end
  end
  if d.twice or doubled(d.ids) then return 'moved' end
  local names = {}
  for _, name in ipairs(d.names) do
    if names[name] or call('HEXISTS', key(d.id) .. ':c', name) == 1 then return 'exists' end
    names[name] = true
  end
end

-- chunked gives n values of ARGV from position p on to a command, in chunks.
local function chunked(command, k, p, n)
  for i = 1, n, CHUNK do
    call(command, k, unpack(ARGV, p + i, p + math.min(i + CHUNK - 1, n)))
  end
end

-- record writes what a run did: reads, state, children, messages, closes, log.
local function record(d)
  local k = key(d.id)
  if d.entry ~= '' then sent = {} end
  for _, t in ipairs(d.takes) do
    local field = t.dir .. '.' .. t.port
    call('LTRIM', key(t.id) .. ':' .. t.dir .. ':' .. t.port, t.n, -1)
    call('HINCRBY', key(t.id), 'h.' .. field, t.n)
    drained(t.id, t.dir, t.port, t.limit)
  end
  chunked('HSET', k .. ':s', d.set, d.nset)
  chunked('HDEL', k .. ':s', d.unset, d.nunset)
  local after = cursor
  cursor = d.spawn
  for _ = 1, d.nspawn do born() end
  if d.nspawn > 0 then births(d.id, d.nspawn) end
  cursor = after
  for _, w in ipairs(d.writes) do
    local into = sent
    if w.unlogged then sent = nil end
    if tree(w.id) == tree(d.id) then
      deliver(w.id, w.dir, w.port, w.items, w.hash)
    else -- an adopted child
      for _, v in ipairs(w.items) do mail(w.id, 'write', w.id, w.port, '', v) end
    end
    sent = into
  end
  for _, v in ipairs(d.defaults) do set_default(v.id, v.dir, v.port, v.set and v.value or nil) end
  for _, port in ipairs(d.closes) do finish(d.id, 'o', port) end
  if d.nports >= 0 then
    cursor = d.ports - 1
    set_ports(d.id)
    cursor = after
  end
  local log = P .. 'log:' .. tree(d.id)
  for _, note in ipairs(d.log) do
    call('XADD', log, 'MAXLEN', '~', '10000', '*', 'job', d.id, 'note', note)
  end
  for _, after in ipairs(d.wakes) do
    local first = after < 0 and tonumber(call('ZRANGE', k .. ':t', 0, 0)[1])
    if not first or first > NOW - after then alarm(d.id, NOW + math.abs(after)) end
  end
  log_run(d.id, d.entry)
  if d.failure ~= '' then
    call('LPUSH', k .. ':e', d.failure)
    call('LTRIM', k .. ':e', 0, 19)
  end
end

-- ignored tells whether the failure of a job, or of a graph that it is part of, does not matter.
local function ignored(j)
  while j.policy ~= 'ignore' do
    if not j.pgraph then return false end
    j = load(j.parent)
  end
  return true
end

-- conclude gives the job its status after the run.
local function conclude(d, j)
  local event, at = d.outcome, nil
  if d.delay > 0 or event == 'backoff' then at = NOW + d.delay end
  if j.status == S.terminating then
    if event ~= 'shutdown' then return place(j, j.status, at) end
    for _, field in ipairs(call('HKEYS', key(j.id))) do
      local port = string.match(field, '^i%.(.+)$')
      if port then free(j.id, port) end
    end
    if j.pgraph then silence(j) end
    return place(j, EV.shutdown[j.status])
  end
  if j.again and (event == 'complete' or event == 'suspend') then event = 'requeue' end
  if event == 'fail' and ignored(j) then silence(j) end
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
  if j.version ~= g.version or j.touched ~= g.touched or (j.last or '') ~= g.last then return 'moved' end
  local k = key(d.id)
  local rate = rated(j, g.limit)
  if not rate or call('LLEN', k .. ':i:' .. g.port) ~= g.seen or call('EXISTS', k .. ':lock') == 1 then return 'moved' end
  local asleep = j.status
  j.token, j.status = d.token, EV.begin[EV.wake[asleep]]
  local why = refuse(d)
  if why then
    j.token, j.status = false, asleep
    return why
  end
  j.woken, j.again, j.rate = nil, false, rate
  call('HSET', k, 'ran', str(NOW), 'rate', rate)
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
    step = step + 1
    if d.outcome ~= 'checkpoint' then tries = 0 end -- the run may yet fail
  end
  j.last, j.step, j.tries, j.version = d.token, step, tries, j.version + 1
  j.token = d.next ~= '' and d.next
  call('HSET', key(d.id), 'last', d.token, 'token', d.next, 'step', str(step), 'tries', str(tries),
    'version', str(j.version), 'reason', d.reason)
  if d.single ~= '' then call('HSET', key(d.id), 'single', d.single) end
  if d.started then call('HSET', key(d.id), 'started', '1') end
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
  conclude(d, j)
  if j.loop and j.status ~= S.queued then lulls(j) end
  if j.parent and not j.pgraph and not d.handed then wake(j.parent, d.id) end
end

-- transaction reads the deltas of the next transaction of ARGV.
local function transaction()
  local deltas = {}
  for i = 1, num() do deltas[i] = delta() end
  return deltas
end

-- transact applies the deltas of a transaction, in order, up to the first that no longer holds,
-- and returns {deltas that hold, why the next does not or '', whether the last job of them is
-- queued again, and whether it found a port full}, and that job. A delta that an earlier
-- sending applied holds already.
local function transact(deltas)
  local held, why, again, blocked, last = 0, '', 0, 0, nil
  for i, d in ipairs(deltas) do
    if why == '' then
      local j = load(d.id)
      if j.status == '' or j.last ~= d.token then
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
      end
      if why == '' then
        held, last = held + 1, j
        again, blocked = j.status == S.queued and 1 or 0, j.blocked
      end
    end
  end
  return { held, why, again, blocked }, last
end
