-- create: create all jobs of a plan, or none if its first job exists. Of a large plan all
-- but the first were created by create_part, and enter with the first one.
-- KEYS: due
-- ARGV: first job, parent or '', name, token, '1' for a large plan, by what it is unique, as unique.lua says, jobs of the
--       plan, jobs here, then of each what create_next() in plan.lua reads
-- reply: {1 if created by this call, also by an earlier sending of it, {ready jobs}},
--        or {'gone' | 'exists <parent> <name>' | 'ended' | 'graph', {}} for its parent, {'moved', {}} if a number of
--        a child was given out twice, or {'leftovers', {ready jobs}}, or {'unique <root that has its key>', {}}
local first, parent, name, token, large, by, all, n = arg(), arg(), arg(), arg(), arg() == '1', arg(), num(), num()
if call('HEXISTS', key(first), 'status') == 1 and (parent == '' or repeated(token)) then
  return { repeated(token) and 1 or 0, {} }
end
if parent ~= '' then
  local p = load(parent)
  if p.status == '' then return { 'gone', {} } end
  if p.status == S.terminating or p.status == S.terminated then return { 'ended', {} } end
  if p.graph then return { 'graph', {} } end
  if call('HEXISTS', key(parent) .. ':c', name) == 1 then return { 'exists ' .. parent .. ' ' .. name, {} } end
  if doubled(ahead(n)) then return { 'moved', {} } end
end
local holder = unique.holder(by)
if holder then return { 'unique ' .. holder, {} } end
local counts = P .. 't:' .. tree(first)
local v = call('HMGET', counts, 'jobs', 'seq')
local there = tonumber(v[1] or '0')
if large and (not call('ZSCORE', P .. 'due', '!unborn ' .. first) or parent == '' and there ~= all - 1)
  or parent == '' and (not large and there > 0 or erased(first)) then
  return { 'leftovers', wakes() }
end
remember(token)
if compact.lost == first then call('DEL', P .. 'r:' .. first) end
local held
line.families = {} -- of each parent, the names and IDs of its children, which are written at once
for _ = 1, n do held = create_next(held) or held end
for id, names in pairs(line.families) do
  for i = 1, #names, CHUNK do call('HSET', key(id) .. ':c', unpack(names, i, math.min(i + CHUNK - 1, #names))) end
end
unique.take(first, by)
if parent == '' and all > 1 then
  call('HSET', counts, 'seq', v[2] or all - 1, 'jobs', there + n)
elseif parent ~= '' then -- a root that is alone is counted once it may have children
  count_created(first, n)
end
if large then
  if not held then chore('enter', first) end
  call('ZREM', P .. 'due', '!unborn ' .. first)
end
return { 1, wakes() }
