-- job_unlock: end a lock that somebody outside holds on a job. If the job is ready it runs.
-- KEYS: due
-- ARGV: job, token of the lock, '1' to end it whatever its token is, token of this call
-- reply: {'ok' | 'gone' | 'free' | 'held', {ready jobs}}
local id, token, force, act = arg(), arg(), arg() == '1', arg()
local j, k = load(id), key(id) .. ':lock'
if j.status == '' then return { 'gone', {} } end
if repeated(act) then return { 'ok', {} } end
local value = call('GET', k)
if not value then return { 'free', {} } end
if not force and value ~= token and string.sub(value, 1, #token + 1) ~= token .. ' ' then return { 'held', {} } end
remember(act)
call('DEL', k)
if not j.token and (j.status == S.queued or j.status == S.terminating) then place(j, j.status) end
return { 'ok', wakes() }
