-- part.lua: a job that leaves its parent.

-- part takes a job that goes out of its parent's list of children.
local function part(j)
  local name = call('HGET', key(j.id), 'name')
  if j.parent and tree(j.parent) == tree(j.id) then
    if call('HGET', key(j.parent) .. ':c', name) == j.id then call('HDEL', key(j.parent) .. ':c', name) end
  elseif j.parent then
    mail(j.parent, 'orphan', j.parent, name, j.id)
  end
end
