-- hub.lua: channels and aliases. They live beside the shards, under weir:{<namespace>}:.

-- hub: what concerns them; LATER: what an order returns that is to wait until there is memory
local hub = { LATER = -1 }

local FEW = 100 -- subscribers that get messages at once

-- upwards returns a channel and those above it.
local function upwards(channel)
  local all = { channel }
  while channel ~= '/' do
    channel = string.match(channel, '^(.+)/[^/]+$') or '/'
    all[#all + 1] = channel
  end
  return all
end

-- multiplies tells whether messages are to wait for memory as they go to many, by how many bytes they have.
function hub.multiplies(items, copies)
  local size = 0
  for _, item in ipairs(items) do size = size + #item end
  return FULL and copies > 1 and (copies > FEW or size * copies > ORDER_BYTES)
end

-- post leaves messages, joined as in an order, for the shards of some subscribers.
local function post(channel, text, subscribers)
  for _, who in ipairs(subscribers) do
    local id, port = string.match(who, '^(%S+) (%S+)$')
    mail(id, 'write', id, port, channel, text)
  end
end

-- publish sends messages to whoever subscribes to a channel or to one above it, each once, and to Redis
-- subscribers of the channel itself. If these are many, or others still wait for what was published before,
-- it puts the messages down, with who is to get them, and spread sends them in pieces. It returns LATER if it has to
-- wait for memory.
function hub.publish(channel, items)
  local texts, count, sets = {}, 0, {}
  for i, above in ipairs(upwards(channel)) do
    sets[i] = P .. 'ch:' .. above
    count = count + call('SCARD', sets[i])
  end
  local waits = count > 0 and call('EXISTS', P .. 'spread') == 1
  if FULL and waits or hub.multiplies(items, count) then return hub.LATER end
  for i, item in ipairs(items) do
    call('PUBLISH', P .. channel, string.match(item, '^\1[^\n]*\n(.*)$') or item)
    if count > 0 then texts[i] = stamped(item, channel) end
  end
  spent = spent + #items
  if count == 0 then return end
  local size = 0
  for _, text in ipairs(texts) do size = size + #text end
  if not waits and count <= FEW and size * count <= PIECE_BYTES and #texts <= ORDER then
    local all, seen = {}, {}
    for _, set in ipairs(sets) do
      for _, who in ipairs(call('SMEMBERS', set)) do
        if not seen[who] then seen[who], all[#all + 1] = true, who end
      end
    end
    portions(texts, function(first, last) post(channel, table.concat(texts, '\31', first, last), all) end)
    return
  end
  local number = call('INCR', P .. 'spreads')
  call('SUNIONSTORE', P .. 'spread:' .. number, unpack(sets))
  spent = spent + count
  portions(texts, function(first, last)
    local head = number .. '\31' .. (last == #texts and '1' or '0') .. '\31' .. channel .. '\31'
    call('RPUSH', P .. 'spread', head .. table.concat(texts, '\31', first, last))
  end)
  if not waits then chore('spread', '-') end
end

-- spread sends the first messages that publish has put down to some more of those that are to get them.
function hub.spread_some()
  local entry = call('LRANGE', P .. 'spread', 0, 0)[1]
  if not entry then return end
  local number, last, channel, text = string.match(entry, '^(%d+)\31(%d)\31([^\31]*)\31(.*)$')
  local all, rest = P .. 'spread:' .. number, P .. 'spread:rest'
  if call('EXISTS', rest) == 0 then
    call('SUNIONSTORE', rest, all)
    if last == '1' then call('UNLINK', all) end
  end
  post(channel, text, call('SPOP', rest, math.max(1, math.min(ORDER, math.floor(PIECE_BYTES / #text)))))
  if call('EXISTS', rest) == 0 then
    call('LPOP', P .. 'spread')
    if call('EXISTS', P .. 'spread') == 0 then return call('DEL', P .. 'spreads') end
  end
  chore('spread', '-')
end

-- heard tells every shard whether anybody subscribes to statuses.
local function heard(on)
  for shard = 0, tonumber(call('HGET', P .. 'meta', 'shards')) - 1 do
    mail('shard:' .. shard, 'watch', on)
  end
end

-- subscribe adds a port, as "<job> <port>", to a channel.
function hub.subscribe(channel, who)
  call('SADD', P .. 'ch:' .. channel, who)
  local statuses = channel == '/' or channel == '/weir' or string.sub(channel, 1, 6) == '/weir/'
  if statuses and call('SADD', P .. 'watchers', channel .. ' ' .. who) == 1
    and call('SCARD', P .. 'watchers') == 1 then
    heard('1')
  end
end

function hub.unsubscribe(channel, who)
  call('SREM', P .. 'ch:' .. channel, who)
  if call('SREM', P .. 'watchers', channel .. ' ' .. who) == 1 and call('SCARD', P .. 'watchers') == 0 then
    heard('0')
  end
end

-- drop ends what a port, which is gone, subscribes to of a channel and those above it.
function hub.drop(channel, who)
  for _, above in ipairs(upwards(channel)) do hub.unsubscribe(above, who) end
end

-- forget drops what the names say of a deleted job.
function hub.forget(id)
  for _, alias in ipairs(call('SMEMBERS', P .. 'aliases:' .. id)) do
    if call('HGET', P .. 'aliases', alias) == id then call('HDEL', P .. 'aliases', alias) end
  end
  call('DEL', P .. 'aliases:' .. id)
end
