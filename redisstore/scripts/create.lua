-- create: create all jobs of a tree, or none if its root exists.
-- KEYS: due
-- ARGV: root, jobs, then of each what born() in lib.lua reads
-- reply: {1 if created, {ready jobs}}
local root = arg()
if load(root).status ~= '' then return { 0, {} } end
jobs[root] = nil
for _ = 1, num() do born() end
call('ZADD', P .. 'index', str(NOW), root)
return { 1, wakes() }
