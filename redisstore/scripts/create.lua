-- create: create all jobs of a tree, or none if its root exists.
-- KEYS: due
-- ARGV: root, token, jobs, then of each what born() in lib.lua reads
-- reply: {1 if created by this call, also by an earlier sending of it, {ready jobs}}
local root, token = arg(), arg()
if load(root).status ~= '' then return { repeated(token) and 1 or 0, {} } end
jobs[root] = nil
remember(token)
for _ = 1, num() do born() end
call('ZADD', P .. 'index', str(NOW), root)
return { 1, wakes() }
