-- job_alarm: ask for a run at a time.
-- KEYS: due
-- ARGV: job, time (ms) or '', delay (ms), token
-- reply: {'ok', {}, the time (ms)} | {'gone' | 'graph' | 'timers' | status, {}}
local id, at, delay, token = arg(), tonumber(arg()), num(), arg()
local j = load(id)
if j.status == '' then return { 'gone', {} } end
if j.graph then return { 'graph', {} } end
if j.status == S.failed or j.status == S.terminating or j.status == S.terminated then return { j.status, {} } end
at = at or NOW + delay
if repeated(token) then return { 'ok', {}, str(at) } end
if not alarms(id, 1) then return { 'timers', {} } end
remember(token)
alarm(id, at)
return { 'ok', {}, str(at) }
