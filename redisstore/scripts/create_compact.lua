-- create_compact: create a small tree as one record, see compact.lua.
-- KEYS: due
-- ARGV: root, token, digest of its definition, jobs of that or 0 if it should be there, of each what it says; how long the tree
--       is kept, or -; what all its jobs have; the number of the job that is to run, or ''; what the record says of jobs alone;
--       messages, of each the number of its job, 3 times as many values: that, an In port, the message
-- reply: {1 if created by this call, also by an earlier sending of it, {ready jobs}}, or {'leftovers', {ready jobs}},
--        or {what compact.why() says, {}}
local root, token, digest = arg(), arg(), arg()
local r = compact.of(root)
if r or call('HEXISTS', key(root), 'status') == 1 then
  return { (r and r.token == token or repeated(token)) and 1 or 0, {} }
end
if call('EXISTS', P .. 't:' .. root) == 1 or erased(root) then return { 'leftovers', wakes() } end
local texts = list()
if #texts > 0 then compact.define(digest, texts) end
local keep, shared, lead, rest = arg(), arg(), arg(), arg()
local why = compact.why(digest)
if why then return { why, {} } end
compact.create(root, token, digest, keep, shared, lead, rest)
for _ = 1, num() do
  local n, port = num(), arg()
  call('RPUSH', stem(n == 0 and root or root .. '.' .. n) .. ':i:' .. port, arg())
end
call('ZADD', P .. 'index', 0, root)
return { 1, wakes() }
