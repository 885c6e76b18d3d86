-- run.lua: beginning runs.

-- line.box is an inbox that a run sees: messages, and behind them port, head and how many there are.
function line.box(items, port, head, len)
  local n = #items
  items[n + 1], items[n + 2], items[n + 3] = port, head, len
  return items
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
  -- of limits; and whether it claims one. parts is how many there are of the keys of its state, its defaults, and those that
  -- woke it, if the caller knows.
  function look(id, most, bytes, parts)
    local k = key(id)
    local fields, state, defaults, boxes, woken = call('HGETALL', k), {}, {}, {}, nil
    parts = parts or call('EXISTS', k .. ':s', k .. ':d', k .. ':w')
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
      if len > 0 then boxes[#boxes + 1] = line.box(items, port, heads['h.i.' .. port] or '0', len) end
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

-- line.seen is what a run sees, as begin() returns it. A list in a reply costs the server microseconds: an empty one is ''.
local function some(list) return list and (#list > 0 and list or '') end
function line.seen(text, state, defaults, boxes, row, woken)
  return { 'ok', MOMENT, text, some(state), some(defaults), some(boxes), some(row), woken }
end

-- begin starts a run as what line.beginning() reads says, and returns what it sees: {'ok', now, what flat() makes
-- of its fields, state or false, defaults, inboxes, what prefetch() returns}, or {why not, details}. A repeat under the same
-- token answers again. A job that is over its limit of runs a minute is throttled.
local function begin(j, b)
  local k, parts = key(j.id), nil
  if j.status == '' then return { 'gone' } end
  local type = b.types and b.types[j.type] and j.type or line.base(j.type)
  if j.token ~= b.token then
    if j.unwritten and j.key then line.enqueue(j) end
    if j.key and j.pgraph and serial.hold(j) then
      if b.places ~= places.none then places.release(j.id) end
      return { 'status', j.status }
    end
    local to = EV.begin[j.status] or (j.status == S.terminating and j.status)
    if not to or j.token then return { 'status', j.status } end
    parts = call('EXISTS', k .. ':lock', k .. ':s', k .. ':d', k .. ':w')
    local ttl = parts > 0 and call('PTTL', k .. ':lock') or -2
    if j.unwritten and (ttl > 0 or b.places ~= places.none) then line.enqueue(j) end
    if ttl > 0 then
      call('ZADD', P .. 'due', str(NOW + math.min(ttl, 5 * LOOK)), j.id) -- it may end before
      if j.listed then line.leave(j) end
      if b.places ~= places.none then places.release(j.id) end
      return { 'locked', str(ttl) }
    end
    if ttl > -2 then parts = parts - 1 end -- a lock that does not end by itself holds nobody
    local limit = b.limits[type] or b.limits['']
    local rate = entered(j, 1, limit)
    if not rate and j.status == S.queued then
      if j.unwritten then line.enqueue(j) end
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
    local fields = { 'token', token, 'ran', MOMENT, 'again', '0', 'round', round }
    if rate and rate ~= j.rate then
      j.rate = rate
      fields[9], fields[10] = 'rate', rate
    end
    if j.unwritten then
      j.unwritten = false
      fields[#fields + 1], fields[#fields + 2] = 'queued', MOMENT
    end
    place(j, to, NOW + b.lease, unpack(fields))
  end
  local text, state, defaults, boxes, woken, holds, claims = look(j.id, b.batches[type] or b.most, b.bytes, parts)
  if holds and not j.placed then places.release(j.id) elseif claims then places.unclaim(j) end -- of limits that there are no more
  j.wakers = nil
  local row = j.version == 0 and b.row > 0 and prefetch(j, text, b.row) or {}
  return line.seen(text, state, defaults, boxes, row, woken)
end

do -- Lua allows few local names
  local plans, n = {}, 0 -- texts that were read before, with what they say
  local MANY_PLANS = 64

  -- pairs_in reads '<name>=<number>' of each line of a text.
  local function pairs_in(text)
    local out = {}
    for name, value in string.gmatch(text, '([^\31]*)=(%-?%d+)') do out[name] = tonumber(value) end
    return out
  end

  -- chosen reads of which types a ready job may be: marks, priority, type…
  local function chosen(plan, text)
    local marks, priority, types = string.match(text, '^\30([^\30]*)\30([^\30]*)\30(.*)$')
    plan.types, plan.holds, plan.most_of = {}, {}, {}
    plan.priority, plan.lowest = tonumber(priority), priority == 'lowest'
    plan.floor = tonumber(string.match(priority, '^(%d+)%+$') or '')
    local i = 0
    for type in string.gmatch(types, '[^\31]+') do
      i = i + 1
      local mark = (string.byte(marks, i) or 48) - 48
      plan.types[type], plan.holds[type], plan.most_of[type] = true, mark % 2 == 1, math.floor(mark / 2)
    end
  end

  local function read(text)
    local lease, most, batches, bytes, row, limits, limited, more =
      string.match(text, '^(%d+) (%d+) ([^\30]*)\30(%d+) (%d+) ([^\30]*)\30([^\30]*)(.*)$')
    local plan = { lease = tonumber(lease), most = tonumber(most), batches = pairs_in(batches), bytes = tonumber(bytes),
      row = tonumber(row), limits = pairs_in(limits), places = places.read(limited) }
    plan.limits[''] = plan.limits[''] or 2 ^ 31
    if more ~= '' then chosen(plan, more) end
    return { __index = plan }
  end

  -- line.beginning reads how a run is to begin: token, and a text that engines give with most of their calls, which is kept:
  -- lease ms, batch, batches by type, bytes, most jobs in a row, the runs a minute allowed to types, or, below zero, those
  -- without progress, and what places.read() in place.lua reads. If it is to be one of any ready job, it goes on: marks, the
  -- one priority of the jobs, the least that they may have with a + behind it, 'lowest' for the lowest that is ready, or '',
  -- and type… that it may have. A mark is the character 0, and 1 more if the caller goes on with the first job of its
  -- transaction after one of the type, and 2 more for each job of that which it takes at once.
  function line.beginning()
    local token, text = arg(), arg()
    local plan = plans[text]
    if not plan then
      if n == MANY_PLANS then plans, n = {}, 0 end
      plan, n = read(text), n + 1
      plans[text] = plan
    end
    return setmetatable({ token = token }, plan)
  end
end

-- line.following reads how one is to begin behind what the call does, or returns nil: '0', or '4' if the caller has more
-- transactions behind this one; or of which job, and what line.beginning() reads. '3': one that the call makes ready; '1':
-- else the first that is ready; '2': that in any case. It also returns whether the caller goes on.
function line.following()
  local how = arg()
  local b = how ~= '0' and how ~= '4' and line.beginning() or nil
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
