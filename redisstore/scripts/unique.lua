-- unique.lua: unique keys. The hash `unique` of a shard has the root that was created last with each key, until that is removed.
-- What a tree is to be unique by is given as '<ms> <name>': the key, behind the tree's sequential key and \30 if it has one, and
-- for how long others count that were created with it, 0 for until they are over; '' if by nothing.

local unique = {}

-- unique.holder returns the root in place of which a tree is not to be created, or nil.
function unique.holder(by)
  local span, name = string.match(by, '^(%d+) (.*)$')
  local id = name and call('HGET', P .. 'unique', name)
  if not id then return nil end
  local v = call('HMGET', key(id), 'status', 'created')
  if not v[1] then return nil end -- a Redis that lost its last writes may have lost it
  if span == '0' then return not retain.over(v[1]) and id or nil end
  return tonumber(v[2]) + tonumber(span) > NOW and id or nil
end

-- unique.take gives a key to a root that was created now, and has it kept as long as others look for it.
function unique.take(id, by)
  local span, name = string.match(by, '^(%d+) (.*)$')
  if not name then return end
  call('HSET', P .. 'unique', name, id)
  call('HSET', key(id), 'unique', name, 'window', str(NOW + tonumber(span)))
end

-- unique.leave takes the key away from a root that is removed, unless another one has it by now.
function unique.leave(id)
  local name = call('HGET', key(id), 'unique')
  if call('HGET', P .. 'unique', name) == id then call('HDEL', P .. 'unique', name) end
end
