-- launch.lua: trees that runs of other trees start.

local words -- of the order that is carried out

-- launch creates a tree as the order says, behind its words up to one: the jobs behind their number, then messages for In
-- ports of the root, of each: port, messages, message…; then In ports of the root that end. A tree that is there, or was, is
-- left as it is. by: by what it is unique, as unique.lua says.
local function launch(id, upto, by)
  if FULL then return hub.LATER end
  if load(id).status ~= '' or erased(id) or call('EXISTS', P .. 't:' .. id) == 1 then return end
  local args, at = ARGV, cursor
  ARGV, cursor = words, upto
  local n = num()
  if n > 1 then call('HSET', P .. 't:' .. id, 'seq', str(n - 1)) end
  local held
  for _ = 1, n do held = create_next(held) or held end
  if n > 1 then count_created(id, n) end
  for _ = 1, num() do
    local port = arg()
    deliver(id, 'i', port, list())
  end
  for _ = 1, num() do finish(id, 'i', arg()) end
  if by then unique.take(id, by) end
  spent = spent + 12 * n
  ARGV, cursor = args, at
end

-- launch_once is launch for a tree with a unique key. If another one has the key, the job that started the tree logs that, and
-- whoever was to be told of its end (`<job> <port>`, or '') is told.
local function launch_once(by, writer, tell, _, id)
  if FULL then return hub.LATER end
  local holder = load(id).status == '' and unique.holder(by)
  if not holder then return launch(id, 6, by) end
  mail(writer, 'note', writer, '"tree ' .. id .. ' was not started: job ' .. holder .. ' has its unique key"')
  if tell ~= '' then retain.told({ id = id, status = 'duplicate' }, tell) end
end
