-- job_adopt: one side of making a job the child of another, or of ending that. While the
-- two lie in different shards, what the parent's list of children says is the truth.
-- KEYS: due
-- ARGV: 'offer', child, parent, name: the child points at its parent-to-be
--       'accept', child, parent, name: the parent lists the child
--       'settle', child, parent, name: the child's pointer is confirmed
--       'doubt', child, parent, name: the child's pointer is in doubt again, before a dismiss
--       'withdraw', child, parent, name: the child points at nobody
--       'dismiss', child, parent, name: the parent no longer lists the child
-- reply: {'ok' | 'gone' | 'exists <parent> <name>' | 'graph' | 'parent' | 'ended', {ready jobs}}
-- From offer or doubt until settle or withdraw `due` says so: the sweeper finishes what a
-- dead process began.
local step, child, parent, name = arg(), arg(), arg(), arg()
local joining = '!joining ' .. child .. ' ' .. parent .. ' ' .. name
if step == 'accept' or step == 'dismiss' then
  local p = load(parent)
  if p.status == '' then return { 'gone', {} } end
  local k = key(parent) .. ':c'
  local holder = call('HGET', k, name)
  if step == 'dismiss' then
    if p.graph then return { 'graph', {} } end
    if holder == child then call('HDEL', k, name) end
    return { 'ok', {} }
  end
  if p.graph then return { 'graph', {} } end
  if p.status == S.terminating or p.status == S.terminated then return { 'ended', {} } end
  if holder and holder ~= child then return { 'exists ' .. parent .. ' ' .. name, {} } end
  call('HSET', k, name, child)
  return { 'ok', {} }
end
local j = load(child)
if step == 'settle' or step == 'withdraw' then call('ZREM', KEYS[1], joining) end
if j.status == '' then return { 'gone', {} } end
local k = key(child)
if step == 'offer' then
  if j.parent and call('HGET', k, 'joining') ~= '1' then return { 'parent', {} } end
  call('ZADD', KEYS[1], str(NOW + 30 * LOOK), joining)
  call('HSET', k, 'parent', parent, 'name', name, 'joining', '1')
  touch(child)
  call('ZREM', P .. 'index', child)
  news.note(child, true)
elseif step == 'doubt' then
  if j.parent ~= parent then return { 'gone', {} } end
  call('ZADD', KEYS[1], str(NOW + 30 * LOOK), joining)
  call('HSET', k, 'joining', '1')
elseif step == 'settle' then
  call('HDEL', k, 'joining')
elseif j.parent == parent then
  parting(j)
  j.parent = false
  call('HSET', k, 'parent', '', 'name', '')
  touch(child)
  call('HDEL', k, 'joining')
  call('ZADD', P .. 'index', 0, child)
  news.note(child, true)
  retain.settled(j)
end
return { 'ok', wakes() }
