-- closing.lua: the end of a port that feeds very many, for those that end_edges has left.

-- close goes on with the closing of a port that feeds very many.
local function close(id, dir, port)
  local all, name = P .. 'closing:' .. tree(id), id .. ' ' .. dir .. ' ' .. port
  local from = call('HGET', all, name)
  if not from then return end
  call('HDEL', all, name)
  end_edges(id, dir, port, wires(id, dir, port) or {}, tonumber(from))
  local j = load(id)
  recheck[id] = j.graph or nil
  rested(j)
end
