-- lib.lua: what every script of the store shares. It is put in front of each of them,
-- behind the state machine's tables S (statuses), EV (event -> from -> to) and SETTLED.
--
-- KEYS[1] is always `weir:{<namespace>:<shard>}:due`. Every other key is derived from
-- it, shares its hash tag, and so lies in the same slot. ARGV is read in order by arg().
-- Rule of all scripts: check first, write last, and begin writing with a command that
-- a full Redis refuses, so that a refusal leaves nothing half done.

local call = redis.call
local P = string.sub(KEYS[1], 1, -4)
local CLOCK = call('TIME')
local NOW = tonumber(CLOCK[1]) * 1000 + math.floor(tonumber(CLOCK[2]) / 1000)
local LOOK = 1000   -- ms after which the sweeper looks at a wake that nobody took
local CHUNK = 1000  -- values given to one command
local cursor = 0
local jobs, ready = {}, {}

local function arg()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function num() return tonumber(arg()) end

local function str(n) return string.format('%.0f', n) end

local function key(id) return P .. 'j:' .. id end

-- load reads the fixed fields of a job, once a script.
local function load(id)
  local j = jobs[id]
  if j then return j end
  local v = call('HMGET', key(id), 'status', 'type', 'queue', 'gen', 'token', 'last', 'again',
    'parent', 'pgraph', 'graph', 'open', 'broken', 'step', 'version', 'tries')
  j = {
    id = id, status = v[1] or '', type = v[2], queue = v[3], gen = tonumber(v[4] or '0'),
    token = v[5] and v[5] ~= '' and v[5], last = v[6], again = v[7] == '1',
    parent = v[8] and v[8] ~= '' and v[8], pgraph = v[9] == '1', graph = v[10] == '1',
    open = tonumber(v[11] or '0'), broken = tonumber(v[12] or '0'),
    step = tonumber(v[13] or '0'), version = tonumber(v[14] or '0'), tries = tonumber(v[15] or '0'),
  }
  jobs[id] = j
  return j
end

-- Calls from outside of runs carry a random token. The driver repeats a call whose reply
-- was lost, at once: for a minute the repeat is known by its token and changes nothing.
local function repeated(token) return call('ZSCORE', P .. 'seen', token) end

local function remember(token)
  call('ZADD', P .. 'seen', str(NOW), token)
  call('ZREMRANGEBYSCORE', P .. 'seen', '-inf', str(NOW - 60000))
end

local review, wake

-- place gives a job its new status, keeps `due` in step, lists jobs that became ready
-- and tells a graph about its child. at (ms) overrides when the sweeper looks at it.
local function place(j, to, at)
  local from = j.status
  j.status = to
  if to == S.queued or (to == S.terminating and not j.token) then
    j.gen, j.again = j.gen + 1, false
    call('HSET', key(j.id), 'status', to, 'gen', str(j.gen), 'queued', str(NOW), 'again', '0')
    call('ZADD', P .. 'due', str(at or NOW + LOOK), j.id)
    if not at then ready[#ready + 1] = j end
  else
    call('HSET', key(j.id), 'status', to)
    if at then
      call('ZADD', P .. 'due', str(at), j.id)
    elseif not j.token then
      call('ZREM', P .. 'due', j.id)
    end
  end
  if not j.pgraph or from == '' then return end
  local open = (SETTLED[to] and 0 or 1) - (SETTLED[from] and 0 or 1)
  local broken = (to == S.failed and 1 or 0) - (from == S.failed and 1 or 0)
  if open == 0 and broken == 0 then return end
  local g = load(j.parent)
  g.open, g.broken = g.open + open, g.broken + broken
  call('HSET', key(g.id), 'open', str(g.open), 'broken', str(g.broken))
  review(g)
end

-- review settles a graph by the counts of its children. A graph has no runs: it goes
-- the same way through the state machine in one step.
function review(g)
  local want, last = S.suspended, 'suspend'
  if g.broken > 0 then
    want, last = S.failed, 'fail'
  elseif g.open == 0 then
    want, last = S.completed, 'complete'
  end
  local start = EV.wake[g.status] or EV.retry[g.status]
  if g.status == want or not start then return end
  place(g, EV[last][EV.begin[start]])
  if g.parent and not g.pgraph then wake(g.parent) end
end

-- wake queues a sleeping job; a running one is queued again when its run ends.
function wake(id)
  local j = load(id)
  if j.status == S.running then
    if not j.again then
      j.again = true
      call('HSET', key(id), 'again', '1')
    end
  elseif EV.wake[j.status] and not j.graph then
    place(j, EV.wake[j.status])
  end
end

-- wires returns the edges of a port: a list of lists of {id, dir, port}; empty for a
-- port that keeps its messages; nil for a port that the job does not have. The second
-- result is the descriptor that a port admitted by `*` will have once it is used.
local function wires(id, dir, port)
  if not string.find(port, '^[%w_]+$') then return nil end -- `*` admits no other names
  local d = call('HGET', key(id), dir .. '.' .. port)
  if not d then
    d = call('HGET', key(id), dir .. '.*')
    if not d then return nil end
    return {}, d
  end
  local edges, tree = {}, string.match(id, '^[^.]+')
  for edge in string.gmatch(d, ' (%S+)') do
    local ends = {}
    for n, dd, p in string.gmatch(edge, '(%d+)([io])%.([^,]+)') do
      ends[#ends + 1] = { n == '0' and tree or tree .. '.' .. n, dd, p }
    end
    edges[#edges + 1] = ends
  end
  return edges
end

-- append puts messages into a port that keeps them, and wakes who waits for them.
local function append(id, dir, port, vals)
  local k = key(id)
  for i = 1, #vals, CHUNK do
    call('RPUSH', k .. ':' .. dir .. ':' .. port, unpack(vals, i, math.min(i + CHUNK - 1, #vals)))
  end
  local j = load(id)
  if dir == 'i' then
    wake(id)
  elseif j.parent and not j.pgraph then
    wake(j.parent)
  end
end

-- deliver sends messages along the edges of a port, down to the ports that keep them.
-- Each edge gets all of them; of an edge with several ends each message goes to one:
-- by hash, or in turn when hash is nil.
local function deliver(id, dir, port, vals, hash)
  if #vals == 0 then return end
  local edges, fresh = wires(id, dir, port)
  if fresh then call('HSET', key(id), dir .. '.' .. port, fresh) end
  if #edges == 0 then return append(id, dir, port, vals) end
  local count = call('HINCRBY', key(id), 'h.' .. dir .. '.' .. port, #vals)
  for _, ends in ipairs(edges) do
    local n, shares = #ends, {}
    if n == 1 then
      shares[1] = vals
    elseif hash then
      shares[hash % n + 1] = vals
    else
      for i, v in ipairs(vals) do
        local turn = (count - #vals + i - 1) % n + 1
        shares[turn] = shares[turn] or {}
        shares[turn][#shares[turn] + 1] = v
      end
    end
    for i, e in ipairs(ends) do
      if shares[i] then deliver(e[1], e[2], e[3], shares[i], hash) end
    end
  end
end

-- finish closes a port, and every port behind it that has no other open source.
local function finish(id, dir, port)
  if call('HSETNX', key(id), 'x.' .. dir .. '.' .. port, '1') == 0 then return end
  local edges, fresh = wires(id, dir, port)
  if fresh then call('HSET', key(id), dir .. '.' .. port, fresh) end
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do
      if call('HINCRBY', key(e[1]), 'n.' .. e[2] .. '.' .. e[3], -1) == 0 then finish(e[1], e[2], e[3]) end
    end
  end
  if #edges == 0 and dir == 'i' then wake(id) end
end

-- node reads the head of one job to be created; skip passes over the rest of it.
local function node()
  return { id = arg(), event = arg(), at = tonumber(arg()), parent = arg(), name = arg() }
end

local function skip()
  cursor = cursor + 1 + tonumber(ARGV[cursor + 1])
  cursor = cursor + 1 + tonumber(ARGV[cursor + 1])
end

-- born creates the next job of ARGV: node, then its fields, then its defaults.
local function born()
  local n = node()
  local k = key(n.id)
  for _, suffix in ipairs({ '', ':d' }) do
    local count = num()
    for i = 1, count, CHUNK do
      call('HSET', k .. suffix, unpack(ARGV, cursor + i, cursor + math.min(i + CHUNK - 1, count)))
    end
    cursor = cursor + count
  end
  if n.parent ~= '' then call('HSET', key(n.parent) .. ':c', n.name, n.id) end
  call('HSET', k, 'created', str(NOW))
  place(load(n.id), EV[n.event][''], n.at)
end

-- batch returns messages of a list from offset on: at most n, and about so many bytes.
local function batch(k, offset, n, bytes)
  local items, size = {}, 0
  while #items < n and size < bytes do
    local from = offset + #items
    local part = call('LRANGE', k, from, from + math.min(50, n - #items) - 1)
    if #part == 0 then break end
    for _, v in ipairs(part) do
      if size >= bytes then break end
      items[#items + 1] = v
      size = size + #v
    end
  end
  return items
end

-- begin starts a run and returns what it sees: {'ok', now, fields, state or false,
-- defaults, inboxes}, or {why not, detail}. A repeat under the same token answers again.
local function begin(j, token, lease, most, bytes)
  local k = key(j.id)
  if j.status == '' then return { 'gone' } end
  if j.token ~= token then
    local to = EV.begin[j.status] or (j.status == S.terminating and j.status)
    if not to or j.token then return { 'status', j.status } end
    local ttl = call('PTTL', k .. ':lock')
    if ttl > 0 then
      call('ZADD', P .. 'due', str(NOW + ttl), j.id)
      return { 'locked', str(ttl) }
    end
    j.token = token
    call('HSET', k, 'token', token, 'ran', str(NOW), 'again', '0')
    place(j, to, NOW + lease)
  end
  local fields, state, boxes = call('HGETALL', k), false, {}
  if call('HLEN', k .. ':s') <= 64 then state = call('HGETALL', k .. ':s') end
  local heads = {}
  for i = 1, #fields, 2 do heads[fields[i]] = fields[i + 1] end
  for i = 1, #fields, 2 do
    local port = string.match(fields[i], '^i%.(.+)$')
    if port and port ~= '*' and not string.find(fields[i + 1], ' ', 1, true) then
      local list = k .. ':i:' .. port
      local len = call('LLEN', list)
      if len > 0 then
        boxes[#boxes + 1] = { port, heads['h.i.' .. port] or '0', len, batch(list, 0, most, bytes) }
      end
    end
  end
  return { 'ok', str(NOW), fields, state, call('HGETALL', k .. ':d'), boxes }
end

-- wakes lists the jobs that this script made ready: id, generation, queue, type, …
local function wakes()
  local out = {}
  for _, j in ipairs(ready) do
    if not j.begun then
      out[#out + 1] = j.id
      out[#out + 1] = str(j.gen)
      out[#out + 1] = j.queue
      out[#out + 1] = j.type
    end
  end
  return out
end
