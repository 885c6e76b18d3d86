-- run.lua: beginning runs.

-- batch_of is how many messages a run of a type gets: what batches, ' <type>=<number>…', says,
-- else most.
local function batch_of(type, batches, most)
  local _, at = string.find(batches, ' ' .. type .. '=', 1, true)
  return at and tonumber(string.match(batches, '^%d+', at + 1)) or most
end

local look
do -- Lua allows few local names
  -- wakers returns the children that woke a job, as far as one run is told of them: up to where, then of each its
  -- name and ID. Those that are not its children any more are forgotten.
  local function wakers(k)
    local all = call('ZRANGE', k .. ':w', 0, CHUNK - 1, 'WITHSCORES')
    local names, out = {}, { all[#all] }
    for i = 1, #all, 2 do names[#names + 1] = all[i] end
    for i, id in ipairs(call('HMGET', k .. ':c', unpack(names))) do
      if id then out[#out + 1], out[#out + 2] = names[i], id end
    end
    return out
  end

  -- look returns what a run of a job sees: what flat() makes of its fields, state or false, defaults, inboxes
  -- with so many messages and bytes, and twice as many bytes in all; what wakers() returns, or nil; whether it holds places
  -- of limits; and whether it claims one.
  function look(id, most, bytes)
    local k = key(id)
    local fields, state, defaults, boxes, woken = call('HGETALL', k), {}, {}, {}, nil
    local parts = call('EXISTS', k .. ':s', k .. ':d', k .. ':w')
    if parts > 0 then
      local keys, bytes = call('HLEN', k .. ':s'), 0
      if keys > 2 and keys <= 64 then
        for _, name in ipairs(call('HKEYS', k .. ':s')) do bytes = bytes + call('HSTRLEN', k .. ':s', name) end
      end
      state = keys <= 64 and bytes <= PIECE_BYTES and call('HGETALL', k .. ':s')
      defaults = call('HGETALL', k .. ':d')
      if parts > math.min(keys, 1) + math.min(#defaults, 1) then woken = wakers(k) end
    end
    local inputs, heads, reason, by, holds, claims = {}, {}, '', '', false, false
    for i = 1, #fields, 2 do
      local name = fields[i]
      local side, dot = string.byte(name, 1, 2)
      if dot ~= 46 then
        if name == 'reason' then reason = fields[i + 1] elseif name == 'by' then by = fields[i + 1] end
        holds, claims = holds or name == 'place', claims or name == 'claim' and fields[i + 1] ~= ''
      elseif side == 105 and name ~= 'i.*' and not string.find(fields[i + 1], ' ', 1, true) then -- i.<port>
        inputs[#inputs + 1] = string.sub(name, 3)
      elseif side == 104 then -- h.<direction>.<port>
        heads[name] = fields[i + 1]
      end
    end
    local left = 2 * bytes
    for _, port in ipairs(inputs) do
      local list = k .. ':i:' .. port
      local items, all, size = batch(list, 0, most, math.min(bytes, left))
      left = math.max(left - size, 1) -- for the next ports: of each one message comes at least
      local len = all and #items or call('LLEN', list)
      if len > 0 then boxes[#boxes + 1] = { port, heads['h.i.' .. port] or '0', len, items } end
    end
    return flat(fields, reason, by), state, defaults, boxes, woken, holds, claims
  end
end

-- prefetch returns the jobs in a row behind one whose fields flat() has made this of, that have never run and have neither state
-- nor anything to read yet: at most so many, each as {job, what look() returns but inboxes}. Texts are searched, and fields
-- not looked at one by one: what a commit is told of them it compares anyway.
local prefetch
do -- Lua allows few local names
  local LARGEST = 16384 -- bytes of a job's fields that are not too many to be sent before it runs

  -- joined is what flat() makes of a job's fields.
  local function joined(fields)
    local reason, by = '', ''
    for i = 1, #fields, 2 do
      local name = fields[i]
      if name == 'by' then by = fields[i + 1] elseif name == 'reason' then reason = fields[i + 1] end
    end
    return flat(fields, reason, by)
  end

  -- ports goes over those of one side in such a text, each with its descriptor.
  local function ports(fields, side)
    local at, mark = 0, '\31' .. side .. '.'
    return function()
      at = string.find(fields, mark, at + 1, true)
      if at then return string.match(fields, '^\31..([^\31]+)\31([^\31]*)', at) end
    end
  end

  -- downstream returns the one job that all that a job writes along edges goes to, by its fields.
  local function downstream(id, fields)
    local to
    for _, edges in ports(fields, 'o') do
      if string.find(edges, ' ', 1, true) then
        local n = not to and string.match(edges, '^%d+ (%d+)i%.[%w_]+$')
        if not n then return nil end
        to = n
      end
    end
    return to and (to == '0' and tree(id) or tree(id) .. '.' .. to)
  end

  local SUSPENDED = '\31status\31' .. S.suspended .. '\31'

  -- unused tells whether a job with these fields waits for its first run, in a queue.
  local function unused(fields, queue)
    local function has(what) return string.find(fields, what, 1, true) end
    return has(SUSPENDED) and has('\31queue\31' .. queue .. '\31') and not has('\31version\31') and not has('\31loop\0311\31')
  end

  -- bare returns the state and the defaults of one that has nothing to read, or nil.
  local function bare(id, fields)
    local k = key(id)
    local keys = { k .. ':s', k .. ':d', k .. ':w' }
    for port, edges in ports(fields, 'i') do
      if not string.find(edges, ' ', 1, true) then keys[#keys + 1] = k .. ':i:' .. port end
    end
    if #keys > CHUNK then return nil end
    if call('EXISTS', unpack(keys)) == 0 then return {}, {} end
    local _, state, defaults, boxes = look(id, 0, 0)
    if #boxes == 0 and state and #state == 0 then return state, defaults end
  end

  function prefetch(j, all, most)
    local out, id, fields = {}, j.id, type(all) == 'string' and '\31' .. all .. '\31'
    while fields and #out < most do
      id = downstream(id, fields)
      if not id or jobs[id] and jobs[id].version > 0 then break end
      all = joined(call('HGETALL', key(id)))
      fields = type(all) == 'string' and #all <= LARGEST and '\31' .. all .. '\31'
      if not fields or not unused(fields, j.queue) then break end
      local state, defaults = bare(id, fields)
      if not state then break end
      out[#out + 1] = { id, all, state, defaults }
    end
    return out
  end
end

-- begin starts a run as what line.beginning() reads says, and returns what it sees: {'ok', now, what flat() makes
-- of its fields, state or false, defaults, inboxes, what prefetch() returns}, or {why not, details}. A repeat under the same
-- token answers again. A job that is over its limit of runs a minute is throttled.
local function begin(j, b)
  local k = key(j.id)
  if j.status == '' then return { 'gone' } end
  local type = b.types and b.types[j.type] and j.type or line.base(j.type)
  if j.token ~= b.token then
    if j.key and j.pgraph and serial.hold(j) then
      if b.places ~= places.none then places.release(j.id) end
      return { 'status', j.status }
    end
    local to = EV.begin[j.status] or (j.status == S.terminating and j.status)
    if not to or j.token then return { 'status', j.status } end
    local ttl = call('PTTL', k .. ':lock')
    if ttl > 0 then
      call('ZADD', P .. 'due', str(NOW + math.min(ttl, 5 * LOOK)), j.id) -- it may end before
      if j.listed then line.leave(j) end
      if b.places ~= places.none then places.release(j.id) end
      return { 'locked', str(ttl) }
    end
    local limit = b.limits[type] or b.limits['']
    local rate = entered(j, 1, limit)
    if not rate and j.status == S.queued then
      if j.listed then line.leave(j) end
      if b.places ~= places.none then places.release(j.id) end
      local refused = throttle(j, limit)
      b.hot = limit < 0 and { j.id, refused } or b.hot
      return refused
    end
    local missing = places.missing(j, b)
    if missing then return missing end
    j.token, j.round = b.token, tonumber(b.round or '')
    local token, round = places.mark(j, b.token), b.round or (j.round or 0) >= line.TIMES and str(j.round) or ''
    if rate and rate ~= j.rate then
      j.rate = rate
      place(j, to, NOW + b.lease, 'token', token, 'ran', MOMENT, 'again', '0', 'round', round, 'rate', rate)
    else
      place(j, to, NOW + b.lease, 'token', token, 'ran', MOMENT, 'again', '0', 'round', round)
    end
  end
  local text, state, defaults, boxes, woken, holds, claims = look(j.id, batch_of(type, b.batches, b.most), b.bytes)
  if holds and not j.placed then places.release(j.id) elseif claims then places.unclaim(j) end -- of limits that there are no more
  j.wakers = nil
  local row = j.version == 0 and b.row > 0 and prefetch(j, text, b.row) or {}
  return { 'ok', MOMENT, text, state, defaults, boxes, row, woken }
end

-- line.limits reads the runs a minute allowed to types: pairs of type and number, which is below zero if it is of
-- runs without progress.
function line.limits()
  local out = {}
  for _ = 1, num() do
    local t = arg()
    out[t] = num()
  end
  return out
end

-- line.beginning reads how a run is to begin: token, lease ms, batch, batches by type, bytes, most jobs in a row, what
-- limits() reads, what places.read() in place.lua reads.
function line.beginning()
  local b = { token = arg(), lease = num(), most = num(), batches = arg(), bytes = num(), row = num(), limits = line.limits() }
  b.places = places.read(arg())
  return b
end

-- line.choosing reads how a run of a ready job is to begin: what line.beginning() reads, types, marks, the one priority of
-- the jobs, the least that they may have with a + behind it, 'lowest' for the lowest that is ready, or '', type… that it may
-- have. A mark is the character 0, and 1 more if
-- the caller goes on with the first job of its transaction after one of the type, and 2 more for each job of that which it
-- takes at once.
function line.choosing()
  local b = line.beginning()
  b.types, b.holds, b.most_of = {}, {}, {}
  local n, marks = num(), arg()
  local priority = arg()
  b.priority, b.lowest = tonumber(priority), priority == 'lowest'
  b.floor = tonumber(string.match(priority, '^(%d+)%+$') or '')
  for i = 1, n do
    local type, mark = arg(), (string.byte(marks, i) or 48) - 48
    b.types[type], b.holds[type], b.most_of[type] = true, mark % 2 == 1, math.floor(mark / 2)
  end
  return b
end

-- line.following reads how one is to begin behind what the call does, or returns nil: '0', or '4' if the caller has more
-- transactions behind this one; or of which job, and what line.choosing() reads. '3': one that the call makes ready; '1':
-- else the first that is ready; '2': that in any case. It also returns whether the caller goes on.
function line.following()
  local how = arg()
  local b = how ~= '0' and how ~= '4' and line.choosing() or nil
  if b then b.how = how end
  return b, how ~= '0'
end

-- line.follow begins a run as b says, and returns what it sees, or nil if it cannot be now.
function line.follow(b, j)
  local snapshot = begin(j, b)
  if snapshot[1] ~= 'ok' then return nil end
  j.begun = true
  return snapshot
end
