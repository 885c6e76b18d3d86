-- launch.lua: trees that runs of other trees start.

local words -- of the order that is carried out

-- launch creates a tree as the order says: the jobs behind their number, then messages for In ports of the root, of each:
-- port, messages, message…; then In ports of the root that end. A tree that is there, or was, is left as it is.
local function launch(id)
  if FULL then return LATER end
  if load(id).status ~= '' or erased(id) or call('EXISTS', P .. 't:' .. id) == 1 then return end
  local args, at = ARGV, cursor
  ARGV, cursor = words, 2
  local n = num()
  if n > 1 then call('HSET', P .. 't:' .. id, 'seq', str(n - 1)) end
  local held
  for _ = 1, n do held = born(held) or held end
  if n > 1 then births(id, n) end
  for _ = 1, num() do
    local port = arg()
    deliver(id, 'i', port, list())
  end
  for _ = 1, num() do finish(id, 'i', arg()) end
  spent = spent + 12 * n
  ARGV, cursor = args, at
end
