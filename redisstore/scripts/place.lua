-- place.lua: limits of how many runs go on at once, over all processes. A limit has a home shard, where it has as many
-- places: the sorted set `held:<limit>` has who holds one, scored with since when, `waits:<limit>` who waits for one, in
-- order of priority and then of time; the hash `limits` has how many places there are while somebody holds or waits for one, 0
-- if the limit was removed. The hash `places` has what was said last of each limit, by its name without a value: that counts,
-- whatever those say who claim a place, as they may not know it yet. A job claims a place before its run begins, and gives it
-- back when the run is over, however that ends. Between shards both are orders.

local places = {}

-- who is a job as a limit knows it: with its shard, which is that of this call.
function places.who(id) return id .. ' ' .. string.match(P, ':(%d+)}:$') end

-- send does something in a shard: at once if it is that of this call.
function places.send(shard, what, ...)
  if string.find(P, ':' .. shard .. '}:', 1, true) then return places[what](...) end
  mail('shard:' .. shard, 'place', what, ...)
end

-- claimed puts a job in line for a place, in the home of the limit, and gives it one if there is a free one.
function places.claimed(name, max, who, rank, base)
  local held = P .. 'held:' .. name
  call('HSET', P .. 'limits', name, call('HGET', P .. 'places', base or name) or max)
  if call('ZSCORE', held, who) then return places.grant(name, who) end
  call('ZADD', P .. 'waits:' .. name, 'NX', rank, who)
  places.fill(name)
  for _, old in ipairs(call('ZRANGEBYSCORE', held, '-inf', str(NOW - 60 * LOOK), 'LIMIT', 0, 3)) do
    call('ZADD', held, str(NOW), old) -- a Redis that lost its last writes may have lost that they gave it back
    local id, shard = string.match(old, '^(%S+) (%d+)$')
    places.send(shard, 'checked', id, string.match(P, ':(%d+)}:$'), name)
  end
end

-- fill gives free places to those that wait first: if a limit was raised by very many, a part of them. Each of these gives its
-- place back, and those that wait look each minute. If the limit was removed all that wait go on, and no place counts. It returns
-- how many could have gone on besides.
function places.fill(name)
  local held, waits, max = P .. 'held:' .. name, P .. 'waits:' .. name, call('HGET', P .. 'limits', name)
  local removed = max == '0'
  if removed then call('ZREMRANGEBYRANK', held, 0, CHUNK) end
  local n = call('ZCARD', held)
  local free = removed and math.huge or tonumber(max or '0') - n
  for _ = 1, math.min(free, 50) do
    local first = call('ZRANGE', waits, 0, 0)[1]
    if not first then break end
    call('ZREM', waits, first)
    if not removed then call('ZADD', held, str(NOW), first) end
    places.grant(name, first)
  end
  if call('EXISTS', held, waits) == 0 then call('HDEL', P .. 'limits', name) end
  return math.min(free - 50, call('ZCARD', waits))
end

-- set says how many places a limit has from now on, 0 for no limit any more, and fills those of the names that are in use. It
-- returns whether more could go on.
function places.set(base, max, names)
  local more = false
  call('HSET', P .. 'places', base, max)
  for _, name in ipairs(names) do
    if call('HEXISTS', P .. 'limits', name) == 1 then
      call('HSET', P .. 'limits', name, max)
      more = places.fill(name) > 0 or more
    end
  end
  return more
end

function places.grant(name, who)
  local id, shard = string.match(who, '^(%S+) (%d+)$')
  places.send(shard, 'granted', id, string.match(P, ':(%d+)}:$'), name)
end

-- freed takes back a place, or a claim of one, in the home of the limit.
function places.freed(name, who)
  call('ZREM', P .. 'waits:' .. name, who)
  call('ZREM', P .. 'held:' .. name, who)
  places.fill(name)
end

-- has tells whether a job holds a place of a limit, given as '<home> <name>', by its field, a line each.
function places.has(field, limit) return field and string.find('\n' .. field .. '\n', '\n' .. limit .. '\n', 1, true) end

-- granted lets a job that waits for a place begin its run, in the shard of the job.
function places.granted(id, home, name)
  local j, limit = load(id), home .. ' ' .. name
  local v = call('HMGET', key(id), 'place', 'claim')
  if places.has(v[1], limit) then return end
  if v[2] ~= limit or j.status ~= S.queued then return places.send(home, 'freed', name, places.who(id)) end
  call('HSET', key(id), 'place', (v[1] and v[1] .. '\n' or '') .. limit, 'claim', '', 'reason', '')
  call('ZADD', P .. 'due', str(NOW + LOOK), id)
  line.enter(j)
end

-- checked gives a place back that a job does not hold any more.
function places.checked(id, home, name)
  local j, has = load(id), places.has(call('HGET', key(id), 'place'), home .. ' ' .. name)
  if not has then return places.send(home, 'freed', name, places.who(id)) end
  if not j.placed and j.status ~= S.queued then places.release(id) end
end

-- release gives back what a job holds and claims.
function places.release(id)
  local v = call('HMGET', key(id), 'place', 'claim')
  if not v[1] and not v[2] then return end
  call('HDEL', key(id), 'place', 'claim')
  for limit in string.gmatch((v[1] or '') .. '\n' .. (v[2] or ''), '[^\n]+') do
    local home, name = string.match(limit, '^(%d+) (.*)$')
    places.send(home, 'freed', name, places.who(id))
  end
end

-- mark is the token of a run as it is stored: with a + behind it if the run holds places.
function places.mark(j, token) return j.placed and token ~= '' and token .. '+' or token end

-- over gives back what a run held that is over.
function places.over(j)
  j.placed = nil
  places.release(j.id)
end

-- value is that of an argument by which a type is limited, as part of a name.
function places.value(id, by)
  local fine, args = pcall(cjson.decode, call('HGET', key(id), 'args') or '{}')
  local v = fine and type(args) == 'table' and args[by]
  local text = tostring(v)
  if type(v) == 'number' then text = string.format('%.17g', v) end
  if not v or type(v) == 'table' or v == cjson.null then text = '' end
  return (#text > 64 or string.find(text, '%c')) and redis.sha1hex(text) or text
end

-- limited returns the limits of a job, that of its type and that of its queue, each as {name, its home, places, name without
-- a value}.
function places.limited(j, all)
  local out, typed, queued = {}, all['t' .. line.base(j.type)], all['q' .. j.queue]
  if typed then
    local base = 'type:' .. line.base(j.type)
    out[1] = { typed.by ~= '' and base .. ':' .. places.value(j.id, typed.by) or base, typed.home, typed.max, base }
  end
  if queued then out[#out + 1] = { 'queue:' .. j.queue, queued.home, queued.max, 'queue:' .. j.queue } end
  return out
end

-- missing claims a place that a job needs and does not hold, and returns why it may not begin, or nil. It claims one after
-- the other, that of the type first, so that no two jobs wait for each other.
function places.missing(j, all)
  if all == places.none then return nil end
  if not all['t' .. line.base(j.type)] and not all['q' .. j.queue] or j.status ~= S.queued then return nil end
  local k = key(j.id)
  local v = call('HMGET', k, 'place', 'claim')
  for _, l in ipairs(places.limited(j, all)) do
    local name, home, max, base = unpack(l)
    local limit = home .. ' ' .. name
    if not places.has(v[1], limit) then
      if v[2] and v[2] ~= '' and v[2] ~= limit then -- a patch has put it into another queue
        local before, other = string.match(v[2], '^(%d+) (.*)$')
        places.send(before, 'freed', other, places.who(j.id))
      end
      call('HSET', k, 'claim', limit, 'reason', 'limit: ' .. name .. ' has no free place')
      call('ZADD', P .. 'due', str(NOW + 60 * LOOK), j.id)
      if j.listed then line.leave(j) end
      places.send(home, 'claimed', name, max, places.who(j.id), str((1000 - j.priority) * 2 ^ 41 + NOW), base)
      v = call('HMGET', k, 'place', 'claim')
      if not places.has(v[1], limit) then
        j.waits = true
        return { 'limit', name, max }
      end
    end
  end
  j.placed = true
end

-- places.none is what read returns if there are no limits.
places.none = {}

-- read reads limits: of each 't' or 'q', a blank, its home, places, the argument by which it is, and the type or queue.
function places.read(text)
  if text == '' then return places.none end
  local all = {}
  for kind, home, max, by, name in string.gmatch(text, '([tq]) (%d+) (%d+) ([^ \31]*) ([^\31]+)') do
    all[kind .. name] = { home = home, max = max, by = by }
  end
  return all
end
