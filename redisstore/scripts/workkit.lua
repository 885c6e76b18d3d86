-- workkit.lua: schedules in the keys of WorkKit, `<name>:jobs` and `<name>:next`, which other programs read and write, too. What
-- Weir knows besides of a schedule lies beside the channels. These keys have different slots: there is no WorkKit on a cluster.

local kit = {}

function kit.key(name, what) return P .. 'workkit:' .. name .. ':' .. what end

-- kit.put puts a member into the queue of a schedule, behind all that Weir has put there with the same score. A sequence that
-- is dropped, as entries went that somebody else took, costs only that order.
function kit.put(name, member, score)
  local queue, order = name .. ':next', kit.key(name, 'order')
  call('ZADD', queue, score, member)
  local last = call('ZRANGE', order, -1, -1, 'WITHSCORES')[2]
  call('ZADD', order, str(tonumber(last or '0') + 1), member)
  if call('ZCARD', order) > call('ZCARD', queue) + CHUNK then call('ZREMRANGEBYRANK', order, 0, 99) end
end

-- kit.ended forgets an entry of which the last run has ended, that of a tree, unless somebody has put it into the queue again. If
-- the keys cannot be used here, as a user of Redis may not, whoever serves the schedule does so later.
function kit.ended(name, id, of)
  local running = kit.key(name, 'last')
  local root, member = string.match(call('HGET', running, id) or '', '^(%S+) (.*)$')
  if root ~= of then return end
  local fine, queued = pcall(call, 'ZSCORE', name .. ':next', member)
  if fine and not queued then fine = pcall(call, 'HDEL', name .. ':jobs', id) end
  if fine then call('HDEL', running, id) end
end
