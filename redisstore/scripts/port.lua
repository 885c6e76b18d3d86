-- port.lua: moving messages through ports and edges.

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

local finish

-- crowd is how many feed a port, at least one, given how many the port has that leads to it.
function fanout.crowd(sources, before) return math.max(tonumber(sources or '1'), 1) * (before or 1) end

-- share is how many messages the next commit of a job may write to an In port into which so many fit: all, but its part of
-- them if others feed it, too.
function fanout.share(fit, crowd) return fit <= 1 and math.max(fit, 0) or math.ceil(fit / crowd) end

-- append puts messages into a port that keeps them, and wakes who waits for them.
local function append(id, dir, port, vals, limit, crowd)
  local k, len = key(id), 0
  spent = spent + #vals + 8
  news.moved(id)
  for i = 1, #vals, CHUNK do
    len = call('RPUSH', k .. ':' .. dir .. ':' .. port, unpack(vals, i, math.min(i + CHUNK - 1, #vals)))
  end
  local name = id .. dir .. port
  local head, sources = wired[name] and wired[name].head, wired[name] and wired[name].sources
  if sent and not head or writer and not sources and dir == 'i' and limit > 0 then
    local v = call('HMGET', k, 'h.' .. dir .. '.' .. port, 'n.' .. dir .. '.' .. port)
    head, sources = v[1] or '0', v[2] or '0'
  end
  if sent then
    local from = tonumber(head) + len - #vals
    local s = sent[name]
    if s and s.from + s.n == from then
      s.n = s.n + #vals
    else
      sent[name] = { id = id, dir = dir, port = port, from = from, n = #vals }
      sent[#sent + 1] = sent[name]
    end
  end
  if port == 'errors' and dir == 'o' then call('ZADD', P .. 'dead', 0, id) end
  if id ~= guessed then -- which reads them in this transaction
    local fit = dir == 'i' and limit > 0 and fanout.share(limit - len, fanout.crowd(sources, crowd)) or PLENTY
    space = space < 0 and fit or math.min(space, fit)
  end
  if writer and dir == 'i' and limit > 0 and len >= limit then full(id, port) end
  if quiet then
    if dir == 'i' then touch(id) end
    return
  end
  local j = load(id)
  if dir == 'i' then
    j.port = port
    wake(id, nil, nil, true)
  elseif j.parent and not j.pgraph then
    wake(j.parent, id)
  end
end

-- stamped returns a message with the channel that it was published to in its context. It
-- comes last, so that it counts if the context of a message that goes on names another.
local function stamped(v, channel)
  local head, data = string.match(v, '^\1([^\n]*)}\n(.*)$')
  if not head then return '\1{"channel":"' .. channel .. '"}\n' .. v end
  return '\1' .. head .. (head == '{' and '' or ',') .. '"channel":"' .. channel .. '"}\n' .. data
end

-- along sends messages along the edges of a port. Each edge gets all of them; of an edge with several ends
-- each message goes to one: by hash, or in turn when hash is nil.
local deliver
local function along(id, dir, port, edges, vals, hash, crowd)
  local count = call('HINCRBY', key(id), 'h.' .. dir .. '.' .. port, #vals)
  if writer and id ~= writer then crowd = fanout.crowd(call('HGET', key(id), 'n.' .. dir .. '.' .. port), crowd) end
  news.moved(id)
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
      if shares[i] then deliver(e[1], e[2], e[3], shares[i], hash, crowd) end
    end
  end
end

-- deliver sends messages from a port on, down to the ports that keep them.
function deliver(id, dir, port, vals, hash, crowd)
  if #vals == 0 then return end
  local edges, fresh = wires(id, dir, port)
  if not edges then return end -- an edge to a job that was deleted: nobody is there to read
  admit(id, dir, port, fresh)
  if dir == 'o' then
    for _, channel in ipairs(edges.channels) do mail_all('hub', vals, 'publish', channel) end
  end
  if edges.moving or #edges == 0 and not edges.drops then return append(id, dir, port, vals, edges.limit, crowd) end
  along(id, dir, port, edges, vals, hash, crowd)
  if #edges > 0 or dir == 'i' or quiet then return end
  local j = load(id)
  if j.parent and not j.pgraph then wake(j.parent, id) end -- as when the port keeps what it publishes
end

-- end_edges tells what a port feeds, behind the first so many, that one of its sources is closed. What has no other open
-- source is closed, too. If they are many the chores go on with it, and the hash `closing` tells how far it is.
local function end_edges(id, dir, port, edges, from)
  local function done(e)
    local name = e[2] .. '.' .. e[3]
    if e[4] or not wires(e[1], e[2], e[3]) or call('HINCRBY', key(e[1]), 'n.' .. name, -1) ~= 0 then return end
    if call('HEXISTS', key(e[1]), 'f.' .. name) == 0 then return finish(e[1], e[2], e[3]) end
    local graph = load(e[1]).parent
    call('SADD', key(graph) .. ':l', e[1] .. ' ' .. e[3])
    recheck[graph] = true
  end
  local n = 0
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do
      if n >= from and ended >= MANY then
        local name = id .. ' ' .. dir .. ' ' .. port
        call('HSET', P .. 'closing:' .. tree(id), name, str(n))
        return chore('close', name, true)
      elseif n >= from then
        ended = ended + 1
        done(e)
      end
      n = n + 1
    end
  end
end

-- finish closes a port, and every port behind it that has no other open source. One that
-- feedback may still feed is put aside until its graph is quiescent.
function finish(id, dir, port)
  local edges, fresh = wires(id, dir, port)
  if not edges or call('HSETNX', key(id), 'x.' .. dir .. '.' .. port, '1') == 0 then return end
  news.moved(id)
  admit(id, dir, port, fresh)
  if edges.moving then return end -- the end comes behind what lies there: see move
  end_edges(id, dir, port, edges, 0)
  if dir == 'i' and load(id).graph then recheck[id] = true end
  if #edges == 0 and dir == 'i' then
    touch(id)
    wake(id, nil, nil, true)
  end
end

-- silence closes the wired Out ports of a job from which nothing comes any more: those that it
-- feeds must not wait.
local function silence(j)
  for _, field in ipairs(call('HKEYS', key(j.id))) do
    local port = string.match(field, '^o%.(.+)$')
    if port and #(wires(j.id, 'o', port) or {}) > 0 then finish(j.id, 'o', port) end
  end
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

-- subscribed_to returns what a text says that In ports of a job subscribe to, "port=channel …", as a set.
local function subscribed_to(text)
  local pairs_of = {}
  for pair in string.gmatch(text, '%S+=%S+') do pairs_of[pair] = true end
  return pairs_of
end

-- subscriptions replaces what In ports of a job subscribe to: "port=channel …". Only differences become orders, the
-- subscriptions first: a port that goes on listening misses nothing that is published meanwhile.
local function subscriptions(id, new)
  local old = call('HGET', key(id), 'subscribed') or ''
  if old == new then return end
  local before, after = subscribed_to(old), subscribed_to(new)
  local function order(what, text, except)
    for port, channel in string.gmatch(text, '(%S+)=(%S+)') do
      if port ~= '*' and not except[port .. '=' .. channel] then mail('hub', what, channel, id .. ' ' .. port) end
    end
  end
  order('subscribe', new, before)
  order('unsubscribe', old, after)
  local silent = load(id).silent
  if silent == '2' then silent = '' end
  for channel in string.gmatch(new, '=(%S+)') do
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
  wired = {}
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
    elseif dir == 'i' and port ~= '*' then
      relieve(id, port, wires(id, dir, port).limit)
    end
  end
end

