-- job_apply: fire one of the events run, retry, force, terminate at a job.
-- KEYS: due
-- ARGV: job, event, token, entry of the log or ''; terminate only: '1' for the whole subtree, '<status> <commits>' that the job
--       was seen to have, or ''
-- reply: {'ok' | 'gone' | 'graph' | 'moved' | status that refuses the event, {ready jobs}}
local id, event, token, entry, whole, seen = arg(), arg(), arg(), arg(), arg() == '1', arg() or ''
local j = load(id)
if j.status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
if event == 'terminate' then
  if seen ~= '' and seen ~= j.status .. ' ' .. str(j.step) then return { 'moved', {} } end
  remember(token)
  if j.status == S.terminating or j.status == S.terminated then entry = '' end -- it is not the first
  terminate(id, whole or j.graph)
  by_hand(id, entry)
  return { 'ok', wakes() }
end
if j.graph then return { 'graph', {} } end
local to = EV[event][j.status]
if to and j.status == S.terminated and deleting(id) then return { 'gone', {} } end
if to then
  remember(token)
  call('HSET', key(id), 'tries', '0', 'reason', '', 'ending', '0')
  place(j, to)
  by_hand(id, entry)
elseif event == 'retry' then
  return { j.status, {} }
elseif j.status == S.running then
  wake(id)
elseif j.status == S.queued then
  ready[1] = j -- it may have been delayed
else
  return { j.status, {} }
end
return { 'ok', wakes() }
