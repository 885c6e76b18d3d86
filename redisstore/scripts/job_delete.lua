-- job_delete: delete a terminated job and all below it, which the caller has found
-- terminated since it marked the job. A mark is one caller's, and holds for a minute.
-- KEYS: due
-- ARGV: job, 'mark' | 'unmark' | 'delete', token
-- reply: {'ok' | 'gone' | 'graph' | 'deleting' | status, {ready jobs}}
local id, step, token = arg(), arg(), arg()
local j = load(id)
if step == 'delete' and repeated(token) then
  for _, rest in ipairs({ '!chores', '!mail' }) do urgent[rest] = call('ZSCORE', KEYS[1], rest) and true or nil end
  return { 'ok', wakes() }
end
if j.status == '' then return { 'gone', {} } end
local since, owner = marked(id)
if step == 'unmark' then
  if owner == token then call('HDEL', key(id), 'deleting') end
  return { 'ok', {} }
end
if j.status ~= S.terminated then return { j.status, {} } end
if step == 'mark' then
  if since and owner ~= token then return { 'deleting', {} } end
  call('HSET', key(id), 'deleting', str(NOW) .. ' ' .. token)
  return { 'ok', {} }
end
if j.pgraph then return { 'graph', {} } end -- its graph goes as a whole
if not since or owner ~= token then return { 'deleting', {} } end
probe()
remember(token)
part(j)
erase(id, 'delete')
return { 'ok', wakes() }
