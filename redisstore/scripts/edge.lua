-- edge.lua: the edges of ports, and back pressure along them.

local MOVING = ' >' -- in a descriptor: what lies in the port is being moved along its edges, and all else goes behind it

-- edges_of returns what wires() does, of a port of a job, by its descriptor.
local function edges_of(id, d)
  local edges = { channels = {}, limit = tonumber(d) }
  if edges.limit then return edges end -- there is no more than that
  local root = tree(id)
  edges.limit = tonumber(string.match(d, '^%d+') or '0')
  edges.moving = string.find(d, MOVING, 1, true) ~= nil
  for channel in string.gmatch(d, ' #(%S+)') do edges.channels[#edges.channels + 1] = channel end
  edges.drops = #edges.channels > 0 and not string.find(d, ' +', 1, true)
  for edge in string.gmatch(d, ' (%d%S*)') do
    local ends = {}
    for n, dd, p, loop in string.gmatch(edge, '(%d+)([io])%.([%w_]+)(~?)') do
      ends[#ends + 1] = { n == '0' and root or root .. '.' .. n, dd, p, loop == '~' }
    end
    edges[#edges + 1] = ends
  end
  return edges
end

-- wires returns the edges of a port: a list of lists of {id, dir, port, feedback}; empty for a
-- port that keeps its messages; nil for a port that the job does not have. The second
-- result is the descriptor that a port admitted by `*` will have once it is used. The
-- list's field channels names the channels that the port publishes to, limit is the
-- number of messages at which it is full, 0 for none; drops is true if what it publishes is not
-- kept where it is wired to nobody; moving tells whether messages that the port kept are still being
-- moved along the edges. head is how many messages have left the port, if plain.lua has just read that.
local function wires(id, dir, port)
  local name = id .. dir .. port
  if wired[name] then return wired[name] end
  if not string.find(port, '^[%w_]+$') then return nil end -- `*` admits no other names
  local fresh
  local d = call('HGET', key(id), dir .. '.' .. port)
  if not d then
    d = call('HGET', key(id), dir .. '.*')
    if not d then return nil end
    fresh = d
  end
  local edges = edges_of(id, d)
  if not fresh then wired[name] = edges end
  return edges, fresh
end

-- fanout tells how far messages go from a port. It is a table as Lua knows no more than 200 local names at a time.
local fanout = {}

-- port reads a job with one of its ports, and returns it, the edges of the port, and whether that is closed.
function fanout.port(id, dir, port)
  local name = dir .. '.' .. port
  local j, v = fetch(id, name, 'x.' .. name, 'h.' .. name)
  if v[24] and string.find(port, '^[%w_]+$') then
    wired[id .. dir .. port] = edges_of(id, v[24])
    wired[id .. dir .. port].head = v[26] or '0'
  end
  return j, j.status ~= '' and wires(id, dir, port), v[25]
end

-- reach is how many ports get a message that is written to a port, and how many get one of very many; wide is the same of the
-- edges themselves.
function fanout.reach(id, dir, port)
  local edges = wires(id, dir, port)
  if not edges or #edges == 0 or edges.moving then return 1, 1 end
  return fanout.wide(edges)
end

function fanout.wide(edges)
  if not edges.copies then
    local n, ports = 0, 0
    for _, ends in ipairs(edges) do
      local most = 0 -- each message goes to one of them
      for _, e in ipairs(ends) do
        local copies, all = fanout.reach(e[1], e[2], e[3])
        most, ports = math.max(most, copies), ports + all
      end
      n = n + most
    end
    edges.copies, edges.ports = math.max(n, 1), math.max(ports, 1)
  end
  return edges.copies, edges.ports
end

-- worth is for how many values it counts that n messages, in some lists, are written to a port: job.MaxWrites says how.
function fanout.worth(id, dir, port, n, lists)
  local copies, ports = fanout.reach(id, dir, port)
  local bytes = 0
  for _, items in ipairs(copies > 1 and lists or {}) do
    for _, item in ipairs(items) do bytes = bytes + #item end
  end
  return n * (3 + copies) / 4 + (copies - 1) * bytes / 512 + PORT * math.min(ports, n * copies)
end

-- piece is how many messages for that many ports one script moves on, and about how many bytes.
function fanout.piece(copies, ports)
  return math.max(1, math.floor(PIECE / math.max(copies, ports / 100))), PIECE_BYTES * math.min(1, 8 / copies)
end

local function closed(id, dir, port) return call('HEXISTS', key(id), 'x.' .. dir .. '.' .. port) == 1 end

-- ignored tells whether the failure of a job, or of a graph that it is part of, does not matter.
local function ignored(j)
  while j.policy ~= 'ignore' do
    if not j.pgraph then return false end
    j = load(j.parent)
  end
  return true
end

-- inactive tells whether a job runs no more unless somebody insists, and its graph goes on without it.
local function inactive(j) return j.status == S.terminated or j.status == S.failed and ignored(j) end

-- Back pressure. A commit's messages are always taken; the job that found a port full then
-- rests, in the port's list of those, until somebody takes messages out.
local function full(id, port)
  local j = load(writer)
  if writer == id or j.status == S.terminating or inactive(load(id)) then return end
  if call('ZADD', key(id) .. ':p:' .. port, 'NX', str(NOW), writer) == 0 then return end
  j.blocked = j.blocked + 1
  call('HSET', key(writer), 'blocked', str(j.blocked), 'jam', 'full: port ' .. port .. ' of job ' .. id)
  call('ZADD', P .. 'due', str(NOW + LOOK), '!full ' .. writer .. ' ' .. id .. ' ' .. port)
end

-- free lets those go on whom a port was too full for, but not those who go with its job, if that is removed. If they are
-- many the chores go on with it, up to the last of those who found it so until now: others may come meanwhile.
local function free(id, port, upto, removed)
  local k = key(id) .. ':p:' .. port
  local most = math.max(MANY - #ready, 0)
  local producers = call('ZRANGEBYSCORE', k, '-inf', upto or '+inf', 'LIMIT', 0, most + 1)
  if #producers == 0 then return end
  if #producers > most then
    producers[#producers] = nil
    chore('free', id .. ' ' .. port .. ' ' .. (upto or call('ZRANGE', k, -1, -1, 'WITHSCORES')[2]), true)
  end
  for _, producer in ipairs(producers) do
    local j = load(producer)
    call('ZREM', P .. 'due', '!full ' .. producer .. ' ' .. id .. ' ' .. port)
    if j.blocked > 0 then
      j.blocked = j.blocked - 1
      call('HSET', key(producer), 'blocked', str(j.blocked))
      if j.blocked == 0 and j.status == S.suspended then
        call('HSET', key(producer), 'reason', '')
        if j.again and not (removed and retain.orphaned(producer, id)) then place(j, EV.wake[j.status]) end
      end
    end
  end
  if #producers > 0 then call('ZREM', k, unpack(producers)) end
end

-- free_all lets those go on who wait for room in any In port of a job.
local function free_all(j)
  for _, field in ipairs(call('HKEYS', key(j.id))) do
    local port = string.match(field, '^i%.(.+)$')
    if port then free(j.id, port) end
  end
end

-- relieve frees those whom a port was too full for, if it is not full any more: messages were
-- taken from it, or it has another limit.
local function relieve(id, port, limit)
  if limit == 0 or call('LLEN', key(id) .. ':i:' .. port) < limit then free(id, port) end
end

-- drained does so for a port of either direction that messages were taken from.
local function drained(id, dir, port, limit)
  news.moved(id)
  if dir == 'i' and limit > 0 then relieve(id, port, limit) end
  if port == 'errors' and dir == 'o' and call('EXISTS', key(id) .. ':o:errors') == 0 then call('ZREM', P .. 'dead', id) end
end

-- room tells whether every port that a message to this one would come to has room. Those of inactive jobs
-- that it would come to along edges do not count.
local function room(id, dir, port, along)
  local edges = wires(id, dir, port)
  if not edges then return true end
  if #edges == 0 then
    return dir == 'o' or edges.limit == 0 or call('LLEN', key(id) .. ':i:' .. port) < edges.limit
      or along and inactive(load(id))
  end
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do
      if not room(e[1], e[2], e[3], true) then return false end
    end
  end
  return true
end

-- batch returns messages of a list from offset on: at most n, and about so many bytes; whether they are all of them;
-- and how many bytes they have. It asks for a few first: large messages are not read to be left out.
local function batch(k, offset, n, bytes)
  local items, count, size, some = {}, 0, 0, math.min(4, math.ceil(bytes / 2 ^ 18))
  while count < n and size < bytes do
    local from, most = offset + count, math.min(some, n - count)
    local part = call('LRANGE', k, compact.index(from), compact.index(from + most - 1))
    if count == 0 and #part < math.min(2, most) then return part, true, #part == 1 and #part[1] or 0 end
    for i = 1, #part do
      if size >= bytes then break end
      local v = part[i]
      count, size = count + 1, size + #v
      items[count] = v
    end
    if #part < most then return items, count == from - offset + #part, size end
    some = math.min(50, math.ceil((bytes - size) * count / math.max(size, 1)))
  end
  return items, false, size
end
