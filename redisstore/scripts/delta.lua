-- delta.lua: reading transactions of job deltas.

local NONE = {} -- a list that most deltas have several of

local delta
do -- Lua allows few local names
  -- some returns how many entries of a list follow in ARGV, and the list for them.
  local function some()
    local n = num()
    return n, n > 0 and {} or NONE
  end

  -- few is list for one that is mostly empty.
  local function few()
    if ARGV[cursor + 1] ~= '0' then return list() end
    cursor = cursor + 1
    return NONE
  end

  -- parts reads what each of the runs of a delta wrote and logged.
  local function parts(runs)
    local all, count = {}, nil
    for n = 1, runs do
      local p = {}
      count, p.writes = some()
      for i = 1, count do
        p.writes[i] = { id = arg(), dir = arg(), port = arg(), hash = tonumber(arg()), unlogged = arg() == '1', items = list() }
      end
      p.entry, p.log = arg(), few()
      all[n] = p
    end
    return all
  end

  -- packs reads the same of several runs that wrote to one port at most: all messages as one write, or nil, and the
  -- runs in packs, each with how many messages they wrote, all of them and run by run, and their entries.
  local function packs()
    local to = { id = arg(), dir = arg(), port = arg(), unlogged = arg() == '1', items = few() }
    local all = {}
    for i = 1, num() do all[i] = { n = num(), counts = arg(), entries = arg() } end
    return all, to.id ~= '' and to or nil
  end

  -- changes reads what a delta does to the state of its job, and which jobs it creates.
  local function changes(d)
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
  end

  -- rare reads what few deltas have. Lists are of: name and place in turn; job and alias in turn; names; root and order
  -- in turn.
  local function rare(d)
    local count
    count, d.defaults = some()
    for i = 1, count do d.defaults[i] = { id = arg(), dir = arg(), port = arg(), set = arg() == '1', value = arg() } end
    d.nports = num()
    d.ports = cursor
    if d.nports >= 0 then cursor = cursor + 1 + 3 * d.nports end
    d.failure = arg()
    count, d.wakes = some()
    for i = 1, count do d.wakes[i] = num() end
    d.woken, d.looked, d.aliases, d.released, d.launches = num(), few(), few(), few(), few()
  end

  -- delta reads one delta from ARGV, and tells whether it is plain: see plain.lua. Large parts stay there and are kept as
  -- positions.
  function delta()
    local d = {
      id = arg(), token = arg(), outcome = arg(), flag = arg(),
      delay = 0, next = '', lease = 0, reason = '', single = '', far = '',
      nset = 0, nunset = 0, nspawn = 0, fresh = NONE, names = NONE, ids = NONE, parts = NONE, defaults = NONE, nports = -1,
      failure = '', wakes = NONE, woken = 0, looked = NONE, aliases = NONE, released = NONE, launches = NONE,
    }
    local ends = arg() == '' -- and does nothing else that the next six arguments say
    if not ends then d.delay, d.next, d.lease, d.reason, d.single, d.far = num(), arg(), num(), arg(), arg(), arg() end
    d.last = d.token -- by which a repeat is known
    if d.next ~= '' and d.outcome ~= 'checkpoint' then d.last, d.next = d.next, '' end
    if d.outcome == 'reschedule' then d.at, d.repeated = num(), arg() end
    if string.byte(d.flag) == 54 then d.type, d.written, d.flag = string.match(d.flag, '^6 (%S+) (%S+) (.+)$') end
    d.handed, d.started, d.leads, d.idle = d.flag == '1', d.flag == '2', d.flag == '4', d.flag == '5'
    if string.byte(d.flag) == 51 then
      local pattern = '^3 (%d+) (%d+) (%S+) (%d+) (%d) (%-?%d+) (.*)$'
      local version, touched, port, seen, closed, limit, last = string.match(d.flag, pattern)
      d.guess = {
        version = tonumber(version), touched = tonumber(touched), port = port, seen = tonumber(seen),
        closed = tonumber(closed),
        limit = tonumber(limit), last = last,
      }
    end
    local count
    count, d.takes = some()
    for i = 1, count do
      d.takes[i] = { id = arg(), dir = arg(), port = arg(), head = arg(), n = num() }
    end
    if arg() ~= '' then changes(d) end
    d.runs = num()
    if arg() == '1' then d.packs, d.to = packs() else d.parts = parts(d.runs) end
    d.closes = few()
    d.plain = arg() == ''
    if not d.plain then rare(d) end
    d.plain = d.plain and ends and d.nspawn == 0
    return d
  end
end

-- transaction reads the deltas of the next transaction of ARGV; or what compact.transaction() does, behind 'record'.
local function transaction()
  local deltas, n = {}, arg()
  if n == 'record' then return compact.transaction() end
  for i = 1, tonumber(n) do deltas[i] = delta() end
  return deltas
end

-- weight is how many values a delta writes, as job.MaxWrites counts them.
local function weight(d)
  local n, to = d.nset + 2 * d.nunset, {}
  local function add(w)
    local name = w.id .. w.dir .. w.port
    local all = to[name]
    if not all then
      all = { w = w, n = 0 }
      to[name] = all
    end
    all.n, all[#all + 1] = all.n + #w.items, w.items
  end
  if d.to then add(d.to) end
  for _, p in ipairs(d.parts) do
    for _, w in ipairs(p.writes) do add(w) end
  end
  for _, all in pairs(to) do
    local w = all.w
    local here = tree(w.id) == tree(d.id) and not d.fresh[w.id]
    n = n + (here and fanout.worth(w.id, w.dir, w.port, all.n, all) or all.n + PORT)
  end
  for _, v in ipairs(d.defaults) do
    if not d.fresh[v.id] then n = n + PORT * select(2, fanout.reach(v.id, v.dir, v.port)) end
  end
  return math.ceil(next(to) and n - PORT or n)
end
