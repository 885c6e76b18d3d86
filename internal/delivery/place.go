package delivery

import (
	"github.com/redis/go-redis/v9"
)

// asynq takes tasks from the right end of a list. Here the list is kept in order: those of the highest priority at that end, of one
// priority the oldest. It has a task for each shard at most. What asynq itself puts there may have any place.

// ordered begins scripts: at(n) is what is in the list, priority(id) that of a task, and below(p) how many at the left have a
// lower one than p. ARGV[1] is the default priority, ARGV[2] what begins the keys of tasks.
const ordered = `
local list = KEYS[1]
local function at(n) return redis.call('LRANGE', list, n, n)[1] end
local function priority(id) return tonumber(redis.call('HGET', ARGV[2] .. id, 'priority') or ARGV[1]) end
local function below(p)
  local first = at(0)
  if not first or priority(first) >= p then return 0 end
  local from, to = 1, redis.call('LLEN', list)
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
if not state then
  redis.call('HSET', KEYS[2], 'msg', ARGV[4], 'state', 'pending', 'pending_since', ARGV[6])
elseif state ~= 'pending' or priority(id) >= mine then
  return 0
else
  redis.call('LREM', list, 1, id)
end
if state or ARGV[3] ~= ARGV[1] then redis.call('HSET', KEYS[2], 'priority', mine) end
local n = below(mine)
local left = n > 0 and redis.call('LRANGE', list, 0, n - 1) or {}
if n > 0 then redis.call('LTRIM', list, n, -1) end
redis.call('LPUSH', list, id)
for i = n, 1, -1 do redis.call('LPUSH', list, left[i]) end
return state and 0 or 1
`)

// raise has the oldest task of the lowest priority taken next.
// KEYS: list
var raise = redis.NewScript(ordered + `
local first = at(0)
if not first then return end
local id = at(below(priority(first) + 1) - 1)
redis.call('LREM', list, 1, id)
redis.call('RPUSH', list, id)
`)
