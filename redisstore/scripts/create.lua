-- create: create all jobs of a plan, or none if its first job exists.
-- KEYS: due
-- ARGV: first job, parent or '', name, token, jobs, then of each what born() in run.lua reads
-- reply: {1 if created by this call, also by an earlier sending of it, {ready jobs}},
--        or {'gone' | 'exists' | 'ended', {}} for its parent
local first, parent, name, token, n = arg(), arg(), arg(), arg(), num()
if load(first).status ~= '' then return { repeated(token) and 1 or 0, {} } end
if parent ~= '' then
  local p = load(parent)
  if p.status == '' then return { 'gone', {} } end
  if p.status == S.terminating or p.status == S.terminated then return { 'ended', {} } end
  if p.graph then return { 'graph', {} } end
  if call('HEXISTS', key(parent) .. ':c', name) == 1 then return { 'exists', {} } end
end
jobs[first] = nil
remember(token)
if parent == '' then call('HINCRBY', P .. 't:' .. first, 'seq', n - 1) end
for _ = 1, n do born() end
return { 1, wakes() }
