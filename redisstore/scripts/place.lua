-- place.lua: limits of how many runs go on at once, over all processes, and rates: how many begin in a time. A limit has a
-- home shard, where it has as many places: the sorted set `held:<limit>` has who holds one, scored with since when,
-- `waits:<limit>` who waits for one, in order of priority and then of time; the hash `limits` has how many places there
-- are while somebody holds or waits for one, 0 if the limit was removed. The hash `places` has what was said last of each
-- limit, by its name without a value: that counts, whatever those say who claim a place, as they may not know it yet. A
-- job claims a place before its run begins, and gives it back when the run is over, however that ends. That of a rate,
-- `<places>/<ms>`, is taken from when the run begins until so long after: `ran:<limit>` has the tokens of runs, scored
-- with when they began, and `due` of the home when to look at it again. Between shards all are orders.

local places = {}

-- long is after how many ms somebody who holds a place of a limit, or of a rate, is asked whether he still does.
function places.long(rate) return (rate and 10 or 60) * LOOK end

-- rate tells whether a limit is a rate.
function places.rate(name) return string.sub(name, 1, 5) == 'rate:' end

-- who is a job as a limit knows it: with its shard, which is that of this call.
function places.who(id) return id .. ' ' .. string.match(P, ':(%d+)}:$') end

-- send does something in a shard: at once if it is that of this call.
function places.send(shard, what, ...)
  if string.find(P, ':' .. shard .. '}:', 1, true) then return places[what](...) end
  mail('shard:' .. shard, 'place', what, ...)
end

-- claimed puts a job in line for a place, in the home of the limit, and gives it one if there is a free one.
function places.claimed(name, max, who, rank, base)
  call('HSET', P .. 'limits', name, call('HGET', P .. 'places', base or name) or max)
  if call('ZSCORE', P .. 'held:' .. name, who) then return places.grant(name, who) end
  call('ZADD', P .. 'waits:' .. name, 'NX', rank, who)
  places.fill(name)
  places.doubt(name)
end

-- doubt asks some of those that have held a place for long whether they still do: a Redis that lost its last writes may have
-- lost that they gave it back, and who has one and does not begin, as in a paused queue, gives it back.
function places.doubt(name)
  local held, long = P .. 'held:' .. name, places.long(places.rate(name))
  for _, old in ipairs(call('ZRANGEBYSCORE', held, '-inf', str(NOW - long), 'LIMIT', 0, 20)) do
    call('ZADD', held, str(NOW), old)
    local id, shard = string.match(old, '^(%S+) (%d+)$')
    places.send(shard, 'checked', id, string.match(P, ':(%d+)}:$'), name)
  end
end

-- look is what the sweeper does when it is reminded of a rate.
function places.look(name)
  places.fill(name)
  places.doubt(name)
end

-- reranked moves a job that waits for a place, whose priority has changed.
function places.reranked(name, who, by)
  local rank = call('ZSCORE', P .. 'waits:' .. name, who)
  if rank then call('ZADD', P .. 'waits:' .. name, str(tonumber(rank) + tonumber(by)), who) end
end

-- rerank has that done for a job whose priority is so much lower now.
function places.rerank(id, lower)
  local home, name = string.match(call('HGET', key(id), 'claim') or '', '^(%d+) (.*)$')
  if home and lower ~= 0 then places.send(home, 'reranked', name, places.who(id), str(lower * 2 ^ 41)) end
end

-- counts returns how many places a limit has, 0 if it was removed, nil if it is not in use, and for how many ms a run takes one
-- of a rate.
function places.counts(name)
  local max, per = string.match(call('HGET', P .. 'limits', name) or '', '^(%d+)/?(%d*)$')
  return tonumber(max or ''), tonumber(per or '')
end

-- taken returns how many places of a limit are taken, and forgets those that a rate has free again.
function places.taken(name, per)
  local held, ran = call('ZCARD', P .. 'held:' .. name), P .. 'ran:' .. name
  if not per then return held end
  local over = call('ZCOUNT', ran, '-inf', str(NOW - per))
  if over > 0 then call('ZREMRANGEBYRANK', ran, 0, math.min(over, CHUNK) - 1) end
  return held + call('ZCOUNT', ran, '(' .. str(NOW - per), '+inf')
end

-- fill gives free places to those that wait first: if a limit was raised by very many, a part of them. Each of these gives its
-- place back, and those that wait look each minute. If the limit was removed all that wait go on, and no place counts. It returns
-- how many could have gone on besides.
function places.fill(name)
  local held, waits, ran = P .. 'held:' .. name, P .. 'waits:' .. name, P .. 'ran:' .. name
  local max, per = places.counts(name)
  local removed = max == 0
  if removed then
    call('ZREMRANGEBYRANK', held, 0, CHUNK)
    call('UNLINK', ran)
  end
  local free = removed and math.huge or (max or 0) - places.taken(name, per)
  for _ = 1, math.min(free, 50) do
    local first = call('ZRANGE', waits, 0, 0)[1]
    if not first then break end
    call('ZREM', waits, first)
    if not removed then call('ZADD', held, str(NOW), first) end
    places.grant(name, first)
  end
  local waiting = call('ZCARD', waits)
  if places.rate(name) then places.remind(name, per, waiting > 0 and free > 50, waiting) end
  if call('EXISTS', held, waits, ran) == 0 then call('HDEL', P .. 'limits', name) end
  return math.min(free - 50, waiting)
end

-- remind has the sweeper look at a rate again: now, or when the first of its places is free again if jobs wait, else when all
-- are, or not. It is told, in ms, of what it does not know yet to be so early: it may not look at the shard before.
function places.remind(name, per, now, waiting)
  local due, member, at = P .. 'due', '!rate ' .. name, waiting > 0 and 0 or -1
  local ran = tonumber(per and call('ZRANGE', P .. 'ran:' .. name, at, at, 'WITHSCORES')[2] or '')
  local held = tonumber(waiting > 0 and call('ZRANGE', P .. 'held:' .. name, 0, 0, 'WITHSCORES')[2] or '')
  local till = now and NOW or math.min(ran and ran + per or math.huge, held and held + places.long(true) or math.huge)
  if till == math.huge then return call('ZREM', due, member) end
  local known = tonumber(call('ZSCORE', due, member) or '')
  call('ZADD', due, str(till), member)
  if waiting > 0 and not (known and known <= till) then urgent['!rate ' .. str(till)] = true end
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

-- begun has a run that has begun take a place of a rate, in the home of it, in place of the job.
function places.begun(name, who, token)
  local _, per = places.counts(name)
  call('ZREM', P .. 'held:' .. name, who)
  if per then call('ZADD', P .. 'ran:' .. name, str(NOW), token) end
  places.fill(name)
end

-- drop takes those places from a job that gone(home, name) says, and returns whether it holds others.
function places.drop(id, gone)
  local kept, n = {}, 0
  for limit in string.gmatch(call('HGET', key(id), 'place') or '', '[^\n]+') do
    n = n + 1
    if not gone(string.match(limit, '^(%d+) (.*)$')) then kept[#kept + 1] = limit end
  end
  if #kept == 0 then
    call('HDEL', key(id), 'place')
  elseif #kept < n then
    call('HSET', key(id), 'place', table.concat(kept, '\n'))
  end
  return #kept > 0 or nil
end

-- spend has a run that begins take the places of rates that its job holds, and returns whether that holds others.
function places.spend(id, token)
  return places.drop(id, function(home, name)
    if not places.rate(name) then return false end
    places.send(home, 'begun', name, places.who(id), token)
    return true
  end)
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
  places.left(j)
  call('ZADD', P .. 'due', str(NOW + LOOK), id)
  line.enter(j)
end

-- checked gives a place back that a job does not hold any more, or has had for long and not begun with: if it waits for another
-- one, only that of a rate, so that it keeps its turn.
function places.checked(id, home, name)
  local j, v = load(id), call('HMGET', key(id), 'place', 'claim')
  if places.has(v[1], home .. ' ' .. name) then
    if j.placed then return end
    if not v[2] or v[2] == '' or j.status ~= S.queued then return places.release(id) end
    if not places.rate(name) then return end
    places.drop(id, function(h, n) return h == home and n == name end)
  end
  places.send(home, 'freed', name, places.who(id))
end

-- release gives back what a job holds and claims.
function places.release(id)
  local v = call('HMGET', key(id), 'place', 'claim')
  if not v[1] and not v[2] then return end
  call('HDEL', key(id), 'place', 'claim')
  if v[2] and v[2] ~= '' then places.left(load(id)) end
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
  local v = cjson.null
  if fine and type(args) == 'table' then v = args[by] end
  local text = type(v) == 'number' and string.format('%.17g', v) or tostring(v)
  if v == nil or v == cjson.null or type(v) == 'table' then text = '' end
  return (#text > 64 or string.find(text, '%c')) and redis.sha1hex(text) or text
end

-- limited returns the limits of a job, those of its type and that of its queue, each as {name, its home, places, name without
-- a value}, in the order in which it claims their places: who waits for one holds those before. So those that fewer jobs share
-- come first, and that of the queue, which jobs of other types share, comes last.
function places.limited(j, all)
  local out, type = {}, line.base(j.type)
  local function add(l, base, alone)
    if not l or (l.by ~= '') ~= alone then return end
    out[#out + 1] = { alone and base .. '=' .. places.value(j.id, l.by) or base, l.home, l.max, base }
  end
  local running, rate = all['t' .. type], all['r' .. type]
  add(rate, 'rate:' .. type, true) -- before runs at once: who waits for it may wait for long, and would hold up others meanwhile
  add(running, 'type:' .. type, true)
  add(running, 'type:' .. type, false)
  add(rate, 'rate:' .. type, false)
  add(all['q' .. j.queue], 'queue:' .. j.queue, false)
  return out
end

-- missing claims a place that a job needs and does not hold, and returns why it may not begin, or nil. It claims one after
-- the other, so that no two jobs wait for each other.
function places.missing(j, b)
  if b.places == places.none or j.status ~= S.queued then return nil end
  local limits = places.limited(j, b.places)
  if #limits == 0 then return nil end
  local k = key(j.id)
  local v = call('HMGET', k, 'place', 'claim')
  for _, l in ipairs(limits) do
    local name, home, max, base = unpack(l)
    local limit = home .. ' ' .. name
    if not places.has(v[1], limit) then
      if v[2] and v[2] ~= limit then places.unclaim(j) end -- a patch has put it into another queue
      local why = places.rate(name) and ' has had its runs' or ' has no free place'
      call('HSET', k, 'claim', limit, 'reason', 'limit: ' .. name .. why)
      call('ZADD', P .. 'due', str(NOW + 60 * LOOK), j.id)
      if j.listed then line.leave(j) end
      places.send(home, 'claimed', name, max, places.who(j.id), str((1000 - j.priority) * 2 ^ 41 + NOW), base)
      v = call('HMGET', k, 'place', 'claim')
      if not places.has(v[1], limit) then
        places.wait(j)
        return { 'limit', name, max }
      end
    end
  end
  j.placed = places.spend(j.id, b.token)
end

-- places.none is what read returns if there are no limits.
places.none = {}

-- read reads limits: of each 't', 'r' of a rate or 'q', a blank, its home, places, the argument by which it is, and the type or
-- queue.
function places.read(text)
  if text == '' then return places.none end
  local all = {}
  for kind, home, max, by, name in string.gmatch(text, '([tqr]) (%d+) ([%d/]+) ([^ \31]*) ([^\31]+)') do
    all[kind .. name] = { home = home, max = max, by = by }
  end
  return all
end
