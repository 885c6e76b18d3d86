-- hub.lua: channels and aliases. They live beside the shards, under weir:{<namespace>}:.

-- publish sends a message to whoever subscribes to a channel or to one above it, each
-- once, and to Redis subscribers of the channel itself.
local function publish(channel, item)
  local seen, above = {}, channel
  call('PUBLISH', P .. channel, string.match(item, '^\1[^\n]*\n(.*)$') or item)
  while above do
    for _, who in ipairs(call('SMEMBERS', P .. 'ch:' .. above)) do
      if not seen[who] then
        seen[who] = true
        local id, port = string.match(who, '^(%S+) (%S+)$')
        mail(id, 'write', id, port, above, stamped(item, channel))
      end
    end
    if above == '/' then break end
    above = string.match(above, '^(.+)/[^/]+$') or '/'
  end
end

-- heard tells every shard whether anybody subscribes to statuses.
local function heard(on)
  for shard = 0, tonumber(call('HGET', P .. 'meta', 'shards')) - 1 do
    mail('shard:' .. shard, 'watch', on)
  end
end

local function status_channel(channel)
  return channel == '/' or channel == '/weir' or string.sub(channel, 1, 6) == '/weir/'
end

-- subscribe adds a port, as "<job> <port>", to a channel.
local function subscribe(channel, who)
  call('SADD', P .. 'ch:' .. channel, who)
  if status_channel(channel) and call('SADD', P .. 'watchers', channel .. ' ' .. who) == 1
    and call('SCARD', P .. 'watchers') == 1 then
    heard('1')
  end
end

local function unsubscribe(channel, who)
  call('SREM', P .. 'ch:' .. channel, who)
  if call('SREM', P .. 'watchers', channel .. ' ' .. who) == 1 and call('SCARD', P .. 'watchers') == 0 then
    heard('0')
  end
end

-- forget drops what the names say of a deleted job.
local function forget(id)
  for _, alias in ipairs(call('SMEMBERS', P .. 'aliases:' .. id)) do
    if call('HGET', P .. 'aliases', alias) == id then call('HDEL', P .. 'aliases', alias) end
  end
  call('DEL', P .. 'aliases:' .. id)
end
