-- job_fail: fail a job by hand, without another try.
-- KEYS: due
-- ARGV: job, token, reason, failure to be recorded, entry of the log
-- reply: {'ok' | 'gone' | 'graph' | status that refuses it, {ready jobs}}
local id, token, reason, failure, entry = arg(), arg(), arg(), arg(), arg()
local j, k = load(id), key(id)
if j.status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
if j.graph then return { 'graph', {} } end
local to = EV.give_up[j.status]
if not to then return { j.status, {} } end
remember(token)
if j.status == S.queued then places.release(id) end
amend.cut(j)
call('LPUSH', k .. ':e', failure)
call('LTRIM', k .. ':e', 0, 19)
log_run(id, entry)
if ignored(j) then
  free_all(j)
  silence(j)
end
place(j, to, nil, 'token', '', 'reason', reason)
if j.loop then rested(j) end
if j.parent and not j.pgraph then wake(j.parent, id) end
return { 'ok', wakes() }
