-- tree_reserve: set numbers of a tree aside.
-- KEYS: due
-- ARGV: tree, how many
-- reply: the last of them, or -1 if there is no such tree
local root, n = arg(), num()
local counters = P .. 't:' .. root
if call('HEXISTS', counters, 'jobs') == 0 then
  if load(root).status == '' then return -1 end
  call('HSET', counters, 'jobs', 1) -- a root that was alone so far is not counted
end
return call('HINCRBY', counters, 'seq', n)
