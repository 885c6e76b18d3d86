-- tree_reserve: set numbers of a tree aside.
-- KEYS: due
-- ARGV: tree, how many
-- reply: the last of them, or -1 if there is no such tree
local tree_key, n = P .. 't:' .. arg(), num()
if call('EXISTS', tree_key) == 0 then return -1 end
return call('HINCRBY', tree_key, 'seq', n)
