-- ready_lack: note of ready jobs that nobody will begin: their queue is paused, or no engine that lives has their types, or can
-- decode them. They give back the places of limits that they hold or wait for: others may have them. One that is to end and has
-- waited for long, where engines serve its queue, ends without its Shutdown: any engine may have it.
-- KEYS: due
-- ARGV: ms to wait for an engine, number of jobs, of each: job, '1' if engines serve its queue and none takes it, reason or ''
--       for the one that it has
-- reply: {what is left}
local grace = num()
probe()
for _ = 1, num() do
  local id, lacks, reason = arg(), arg() == '1', arg()
  local j = (lacks or not compact.queued(id)) and load(id) -- a record holds no places
  if j and line.runnable(j) then
    places.idle(j)
    if reason ~= '' then call('HSET', key(id), 'reason', reason) end
    if lacks and j.status == S.terminating and NOW - tonumber(call('HGET', key(id), 'queued') or '0') >= grace then
      line.enter(j, true)
    end
  end
end
return wakes()
