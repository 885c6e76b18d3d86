-- tree_reserve: set numbers of a tree aside.
-- KEYS: due
-- ARGV: tree, how many; for a child of a job of the tree: that job, the child's name
-- reply: the last of them, -1 if there is no such tree, or -2 if the job has a child of that name
local root, n, parent, name = arg(), num(), arg(), arg()
if parent and call('HEXISTS', key(parent) .. ':c', name) == 1 then return -2 end
local counters = P .. 't:' .. root
key(root) -- a record counts nothing
if call('HEXISTS', counters, 'jobs') == 0 then
  if load(root).status == '' then return -1 end
  call('HSET', counters, 'jobs', 1) -- a root that was alone so far is not counted
end
return call('HINCRBY', counters, 'seq', n)
