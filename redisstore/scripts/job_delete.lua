-- job_delete: delete a terminated job and all below it, which the caller has found
-- terminated since it marked the job.
-- KEYS: due
-- ARGV: job, 'mark' | 'unmark' | 'delete'
-- reply: {'ok' | 'gone' | status, {ready jobs}}
local id, step = arg(), arg()
local j = load(id)
if j.status == '' then return { 'gone', {} } end
if step == 'unmark' then
  call('HDEL', key(id), 'deleting')
  return { 'ok', {} }
end
if j.status ~= S.terminated then return { j.status, {} } end
if j.pgraph then return { 'graph', {} } end -- its graph goes as a whole
if step == 'mark' then
  call('HSET', key(id), 'deleting', str(NOW))
  return { 'ok', {} }
end
local name = call('HGET', key(id), 'name')
call('RPUSH', P .. 'chores', '') -- refused, before anything is removed, if memory is full
call('RPOP', P .. 'chores')
if j.parent and tree(j.parent) == tree(id) then
  if call('HGET', key(j.parent) .. ':c', name) == id then call('HDEL', key(j.parent) .. ':c', name) end
elseif j.parent then
  mail(j.parent, 'orphan', j.parent, name, id)
end
mail('hub', 'publish', '/weir/job/' .. id, '{"job":"' .. id .. '","status":"deleted"}')
erase(id, 'delete')
return { 'ok', wakes() }
