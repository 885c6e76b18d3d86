-- job_apply: fire one of the events run, retry, force, terminate at a job.
-- KEYS: due
-- ARGV: job, event, token
-- reply: {'ok' | 'gone' | 'graph' | status that refuses the event, {ready jobs}}
local id, event, token = arg(), arg(), arg()
local j = load(id)
if j.status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
local to = EV[event][j.status]
if event == 'terminate' then
  if to then remember(token) end
  if j.graph and to then
    place(j, EV.shutdown[to])
  elseif to then
    place(j, to)
  end
  return { 'ok', wakes() }
end
if j.graph then return { 'graph', {} } end
if to then
  remember(token)
  call('HSET', key(id), 'tries', '0', 'reason', '')
  place(j, to)
elseif event == 'retry' then
  return { j.status, {} }
elseif j.status == S.running then
  j.again = true
  call('HSET', key(id), 'again', '1')
elseif j.status ~= S.queued then
  return { j.status, {} }
end
return { 'ok', wakes() }
