-- create_part: create some jobs of a large plan. Nobody sees them before create makes the
-- first one; if that never comes the sweeper removes them.
-- KEYS: due
-- ARGV: first job, '1' if it is a root, by what the first is unique, jobs of the plan, jobs here, then of each what
--       create_next() in plan.lua reads
-- reply: '1', or '0' if the first job exists already, or 'leftovers' if those are being removed, or
--        'unique <root that has the first one's key>'
local first, root, by, all, n = arg(), arg() == '1', arg(), num(), num()
if load(first).status ~= '' then return '0' end
local holder = unique.holder(by)
if holder then return 'unique ' .. holder end
if call('EXISTS', key(first) .. ':scrap') == 1 or root and erased(first) then return 'leftovers' end
call('ZADD', P .. 'due', str(NOW + 60000), '!unborn ' .. first)
if root then call('HSETNX', P .. 't:' .. first, 'seq', all - 1) end
local new = 0
for _ = 1, n do
  local at = cursor
  local id = node().id
  if call('HEXISTS', key(id), 'status') == 1 then
    skip() -- from an earlier sending, or a process that died
  else
    cursor = at
    create_next(key(first) .. ':held')
    new = new + 1
  end
end
count_created(first, new)
return '1'
