-- port.lua: moving messages through ports and edges.

-- wires returns the edges of a port: a list of lists of {id, dir, port}; empty for a
-- port that keeps its messages; nil for a port that the job does not have. The second
-- result is the descriptor that a port admitted by `*` will have once it is used. The
-- list's field channels names the channels that the port publishes to, limit is the
-- number of messages at which it is full, 0 for none.
local function wires(id, dir, port)
  if not string.find(port, '^[%w_]+$') then return nil end -- `*` admits no other names
  local fresh
  local d = call('HGET', key(id), dir .. '.' .. port)
  if not d then
    d = call('HGET', key(id), dir .. '.*')
    if not d then return nil end
    fresh = d
  end
  local edges, root = { channels = {}, limit = tonumber(string.match(d, '^%d+') or '0') }, tree(id)
  for channel in string.gmatch(d, ' #(%S+)') do edges.channels[#edges.channels + 1] = channel end
  for edge in string.gmatch(d, ' (%d%S*)') do
    local ends = {}
    for n, dd, p in string.gmatch(edge, '(%d+)([io])%.([^,]+)') do
      ends[#ends + 1] = { n == '0' and root or root .. '.' .. n, dd, p }
    end
    edges[#edges + 1] = ends
  end
  return edges, fresh
end

local function closed(id, dir, port) return call('HEXISTS', key(id), 'x.' .. dir .. '.' .. port) == 1 end

-- admit creates a port that `*` admits, with the options of that: fresh is what wires returned.
local function admit(id, dir, port, fresh)
  if not fresh then return end
  local k, prefix = key(id), dir == 'i' and '' or 'o.'
  call('HSET', k, dir .. '.' .. port, fresh)
  local default = call('HGET', k .. ':d', prefix .. '*')
  if default then call('HSET', k .. ':d', prefix .. port, default) end
  local subscribed = dir == 'i' and call('HGET', k, 'subscribed')
  if not subscribed then return end
  local more = ''
  for channel in string.gmatch(' ' .. subscribed, ' %*=(%S+)') do
    more = more .. ' ' .. port .. '=' .. channel
    mail('hub', 'subscribe', channel, id .. ' ' .. port)
  end
  if more ~= '' then call('HSET', k, 'subscribed', subscribed .. more) end
end

-- quiet wakes nobody by what is appended.
local quiet = false

-- sent collects where messages went, for the log, when it is a table.
local sent

-- Back pressure. A commit's messages are always taken; the job that found a port full then
-- rests, in the port's list of those, until somebody takes messages out.
local writer -- the job whose commit this is

local function full(id, port)
  local j = load(writer)
  if writer == id or j.status == S.terminating or load(id).status == S.terminated then return end
  if call('ZADD', key(id) .. ':p:' .. port, 'NX', str(NOW), writer) == 0 then return end
  j.blocked = j.blocked + 1
  call('HSET', key(writer), 'blocked', str(j.blocked), 'reason', 'full: port ' .. port .. ' of job ' .. id)
  call('ZADD', P .. 'due', str(NOW + 3 * LOOK), '!full ' .. writer .. ' ' .. id .. ' ' .. port)
end

-- free lets those go on whom a port was too full for.
local function free(id, port)
  local k = key(id) .. ':p:' .. port
  local producers = call('ZRANGE', k, 0, -1)
  if #producers == 0 then return end
  for _, producer in ipairs(producers) do
    local j = load(producer)
    call('ZREM', P .. 'due', '!full ' .. producer .. ' ' .. id .. ' ' .. port)
    if j.blocked > 0 then
      j.blocked = j.blocked - 1
      call('HSET', key(producer), 'blocked', str(j.blocked))
      if j.blocked == 0 and j.status == S.suspended then
        call('HSET', key(producer), 'reason', '')
        if j.again then place(j, EV.wake[j.status]) end
      end
    end
  end
  call('DEL', k)
end

-- drained looks whether a port that messages were taken from has room again.
local function drained(id, dir, port, limit)
  if dir == 'i' and limit > 0 and call('LLEN', key(id) .. ':i:' .. port) < limit then free(id, port) end
end

-- append puts messages into a port that keeps them, and wakes who waits for them.
local function append(id, dir, port, vals, limit)
  local k, len = key(id), 0
  for i = 1, #vals, CHUNK do
    len = call('RPUSH', k .. ':' .. dir .. ':' .. port, unpack(vals, i, math.min(i + CHUNK - 1, #vals)))
  end
  if sent then
    local from = tonumber(call('HGET', k, 'h.' .. dir .. '.' .. port) or '0') + len - #vals
    local name = id .. dir .. port
    local s = sent[name]
    if s and s.from + s.n == from then
      s.n = s.n + #vals
    else
      sent[name] = { id = id, dir = dir == 'i' and 'in' or 'out', port = port, from = from, n = #vals }
      sent[#sent + 1] = sent[name]
    end
  end
  if writer and dir == 'i' and limit > 0 and len >= limit then full(id, port) end
  if quiet then return end
  local j = load(id)
  if dir == 'i' then
    wake(id)
  elseif j.parent and not j.pgraph then
    wake(j.parent, id)
  end
end

-- log_run adds to the tree's log what a run, or somebody outside, read and wrote.
local function log_run(id, entry)
  if entry == '' then return end
  local list = {}
  for i, s in ipairs(sent or {}) do
    list[i] = string.format('{"job":"%s","dir":"%s","port":"%s","from":%.0f,"n":%d}', s.id, s.dir, s.port, s.from, s.n)
  end
  call('XADD', P .. 'log:' .. tree(id), 'MAXLEN', '~', '10000', '*', 'job', id, 'run', entry,
    'sent', '[' .. table.concat(list, ',') .. ']')
  sent = nil
end

-- stamped returns a message with the channel that it was published to in its context. It
-- comes last, so that it counts if the context of a message that goes on names another.
local function stamped(v, channel)
  local head, data = string.match(v, '^\1([^\n]*)}\n(.*)$')
  if not head then return '\1{"channel":"' .. channel .. '"}\n' .. v end
  return '\1' .. head .. (head == '{' and '' or ',') .. '"channel":"' .. channel .. '"}\n' .. data
end

-- deliver sends messages along the edges of a port, down to the ports that keep them.
-- Each edge gets all of them; of an edge with several ends each message goes to one:
-- by hash, or in turn when hash is nil.
local function deliver(id, dir, port, vals, hash)
  if #vals == 0 then return end
  local edges, fresh = wires(id, dir, port)
  if not edges then return end -- an edge to a job that was deleted: nobody is there to read
  admit(id, dir, port, fresh)
  if dir == 'o' then
    for _, channel in ipairs(edges.channels) do
      for _, v in ipairs(vals) do mail('hub', 'publish', channel, v) end
    end
  end
  if #edges == 0 then return append(id, dir, port, vals, edges.limit) end
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

-- room tells whether every port that a message to this one would come to has room.
local function room(id, dir, port)
  local edges = wires(id, dir, port)
  if not edges then return true end
  if #edges == 0 then
    return dir == 'o' or edges.limit == 0 or call('LLEN', key(id) .. ':i:' .. port) < edges.limit
  end
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do
      if not room(e[1], e[2], e[3]) then return false end
    end
  end
  return true
end

-- finish closes a port, and every port behind it that has no other open source.
local function finish(id, dir, port)
  local edges, fresh = wires(id, dir, port)
  if not edges or call('HSETNX', key(id), 'x.' .. dir .. '.' .. port, '1') == 0 then return end
  admit(id, dir, port, fresh)
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do
      if wires(e[1], e[2], e[3]) and call('HINCRBY', key(e[1]), 'n.' .. e[2] .. '.' .. e[3], -1) == 0 then
        finish(e[1], e[2], e[3])
      end
    end
  end
  if #edges == 0 and dir == 'i' then wake(id) end
end

-- set_default gives a port a default, or with value nil none, and passes it on along the
-- edges. In ports whose default changed wake their job.
local function set_default(id, dir, port, value)
  local edges, fresh = wires(id, dir, port)
  if not edges then return end
  admit(id, dir, port, fresh)
  local field = dir == 'i' and port or 'o.' .. port
  local k = key(id) .. ':d'
  local before = call('HGET', k, field)
  if value then
    call('HSET', k, field, value)
  else
    call('HDEL', k, field)
  end
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do set_default(e[1], e[2], e[3], value) end
  end
  if #edges == 0 and dir == 'i' and (before or nil) ~= value then wake(id) end
end

-- subscriptions replaces what In ports of a job subscribe to: "port=channel …".
local function subscriptions(id, new)
  local old = call('HGET', key(id), 'subscribed') or ''
  if old == new then return end
  for port, channel in string.gmatch(old, '(%S+)=(%S+)') do mail('hub', 'unsubscribe', channel, id .. ' ' .. port) end
  local silent = load(id).silent
  if silent == '2' then silent = '' end
  for port, channel in string.gmatch(new, '(%S+)=(%S+)') do
    if port ~= '*' then mail('hub', 'subscribe', channel, id .. ' ' .. port) end
    if silent ~= '1' and (channel == '/' or string.find(channel .. '/', '^/weir/')) then silent = '2' end
  end
  load(id).silent = silent
  call('HSET', key(id), 'subscribed', new, 'silent', silent)
end

-- set_ports replaces the unwired ports of a job by those of ARGV: ports, what they
-- subscribe to, then of each: dir.port, descriptor, default or ''. Ports that are kept
-- keep their messages, dropped ones lose them.
local function set_ports(id)
  local k, keep, kd = key(id), {}, key(id) .. ':d'
  local count = num()
  subscriptions(id, arg())
  for _ = 1, count do
    local name, descriptor, default = arg(), arg(), arg()
    keep[name] = true
    local old = call('HGET', k, name)
    if not old or not string.find(old, ' %d') then call('HSET', k, name, descriptor) end
    local dir, port = string.match(name, '^(.)%.(.+)$')
    local field = dir == 'i' and port or 'o.' .. port
    if default ~= '' then call('HSET', kd, field, default) else call('HDEL', kd, field) end
  end
  for _, name in ipairs(call('HKEYS', k)) do
    local dir, port = string.match(name, '^([io])%.(.+)$')
    if dir and not keep[name] and call('HEXISTS', k, 'n.' .. name) == 0
      and not string.find(call('HGET', k, name), ' %d') then
      local field = dir == 'i' and port or 'o.' .. port
      -- The head goes on counting: a run that read what is dropped must not trim what comes later.
      local dropped = call('LLEN', k .. ':' .. dir .. ':' .. port)
      if dropped > 0 then call('HINCRBY', k, 'h.' .. name, dropped) end
      call('HDEL', k, name, 'x.' .. name)
      call('HDEL', kd, field)
      call('DEL', k .. ':' .. dir .. ':' .. port)
      free(id, port)
    elseif dir == 'i' then
      drained(id, dir, port, wires(id, dir, port).limit)
    end
  end
end

