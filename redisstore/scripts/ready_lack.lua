-- ready_lack: note of ready jobs that no engine that lives has their types, or can decode them. One that is to end and has
-- waited for long ends without its Shutdown: any engine may have it.
-- KEYS: due
-- ARGV: ms to wait for an engine, number of jobs, of each: job, reason or '' for the one that it has
-- reply: {what is left}
local grace = num()
probe()
for _ = 1, num() do
  local j, reason = load(arg()), arg()
  if not j.token and (j.status == S.queued or j.status == S.terminating) then
    local age = NOW - tonumber(call('HGET', key(j.id), 'queued') or '0')
    if reason ~= '' then call('HSET', key(j.id), 'reason', reason) end
    if j.status == S.terminating and age >= grace then line.enter(j, true) end
  end
end
return wakes()
