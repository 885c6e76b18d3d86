package delivery

import "github.com/redis/go-redis/v9"

// asynq takes tasks from the right end of a list. Here the list is kept in order: those of the highest priority at that end, of one
// priority the oldest. It has a task for each shard at most. What asynq itself puts there comes to the left end, whatever its priority
// is, as does what programs send that know of none: where that shows the list is put in order again.

// ordered begins scripts: at(n) is what is in the list, priority(id) that of a task, which may be gone or damaged, write(ids) puts
// tasks to the left end, and below(p) is how many there have a lower priority than p. ARGV[1] is the default priority, ARGV[2] what
// begins the keys of tasks.
const ordered = `
local list = KEYS[1]
local function at(n) return redis.call('LRANGE', list, n, n)[1] end
local function priority(id) return tonumber(redis.pcall('HGET', ARGV[2] .. id, 'priority')) or tonumber(ARGV[1]) end
local function write(ids)
  for last = #ids, 1, -1000 do
    local some = {}
    for n = last, math.max(last - 999, 1), -1 do some[#some + 1] = ids[n] end
    redis.call('LPUSH', list, unpack(some))
  end
end
local function sort()
  local ids, of, place = redis.call('LRANGE', list, 0, -1), {}, {}
  for n, id in ipairs(ids) do of[id], place[id] = priority(id), n end
  table.sort(ids, function(x, y) return of[x] < of[y] or of[x] == of[y] and place[x] < place[y] end)
  redis.call('DEL', list)
  write(ids)
end
local function below(p)
  local first, all = at(0), redis.call('LLEN', list)
  if first and all > 1 and (priority(first) > priority(at(-1)) or priority(first) > priority(at(math.floor(all / 2)))) then
    sort()
    first = at(0)
  end
  if not first or priority(first) >= p then return 0 end
  local from, to = 1, all
  while from < to do
    local middle = math.floor((from + to) / 2)
    if priority(at(middle)) < p then from = middle + 1 else to = middle end
  end
  return from
end
`

// place enqueues a task as asynq does, but in its place. One that is pending already with a lower priority moves.
// KEYS: list, task; ARGV besides: priority, message, ID, time; reply: 1, or 0 if there was such a task
var place = redis.NewScript(ordered + `
local mine, id = tonumber(ARGV[3]), ARGV[5]
local state = redis.call('HGET', KEYS[2], 'state')
if state and (state ~= 'pending' or priority(id) >= mine) then return 0 end
if not state then
  redis.call('HSET', KEYS[2], 'msg', ARGV[4], 'state', 'pending', 'pending_since', ARGV[6])
else
  redis.call('HSET', KEYS[2], 'msg', ARGV[4])
  redis.call('LREM', list, 1, id)
end
if state or ARGV[3] ~= ARGV[1] then redis.call('HSET', KEYS[2], 'priority', mine) end
local n, left = below(mine), {}
if n > 0 then
  left = redis.call('LRANGE', list, 0, n - 1)
  redis.call('LTRIM', list, n, -1)
end
left[n + 1] = id
write(left)
return state and 0 or 1
`)

// raise has the oldest task of the lowest priority taken next, unless the queue is paused.
// KEYS: list, key of the pause
var raise = redis.NewScript(ordered + `
local first = redis.call('EXISTS', KEYS[2]) == 0 and at(0)
if not first then return end
local id = at(below(priority(first) + 1) - 1)
redis.call('LREM', list, 1, id)
redis.call('RPUSH', list, id)
`)

// isPaused is what ahead replies of a queue that is paused.
const isPaused = -1

// ahead returns the priority of the task that is taken next, 0 if there is none.
// KEYS: list, key of the pause
var ahead = redis.NewScript(ordered + `
if redis.call('EXISTS', KEYS[2]) == 1 then return -1 end
local last = at(-1)
return last and priority(last) or 0
`)
