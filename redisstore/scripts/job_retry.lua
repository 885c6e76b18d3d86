-- job_retry: have a job run again by hand, now or later, with other args, another priority or name: all of it or nothing.
-- KEYS: due
-- ARGV: job, token, '1' if a run in progress is to lose the job, time (ms) or '', delay (ms) or '', how far its repetition is
--       then or '', version and start of the last run that this follows from, args or '', version of its type that wrote them,
--       priority or '', name or '', what the log says
-- reply: {'ok', {ready jobs}, the time (ms) or ''}, or {'gone' | 'graph' | 'node' | 'adopted' | 'exists <parent> <name>' |
--        'moved' | status that refuses it, {}}
local id, token, cut, at, delay = arg(), arg(), arg() == '1', tonumber(arg()), tonumber(arg())
local far, seen, args, version, priority, name, entry = arg(), arg(), arg(), num(), arg(), arg(), arg()
local j, k = load(id), key(id)
at = at or delay and NOW + delay
if at and at <= NOW then at = nil end
if j.status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {}, at and str(at) or '' } end
if j.graph then return { 'graph', {} } end
local running = j.status == S.running
local to = EV[at and 'retry_later' or running and 'recover' or 'retry'][j.status]
local other = j.status == S.queued and args ~= '' and not at and string.find(j.type, '@.*!') -- those it has one could not decode
if not (to or other) or running and not cut then return { j.status, {} } end
if far ~= '' and seen ~= str(j.version) .. ' ' .. (call('HGET', k, 'ran') or '') then return { 'moved', {} } end
local why = name ~= '' and amend.unnameable(j, name)
if why then return { why, {} } end
remember(token)
note(id, entry)
amend.cut(j)
if at then amend.quiet(j, at) end
if args ~= '' then amend.args(j, args, version) end
if priority ~= '' then amend.priority(j, priority) end
if name ~= '' then amend.name(j, name) end
if far ~= '' then call('HSET', k, 'repeated', far .. ' ' .. str(j.version)) end
if not to then -- it stays queued, and may have been delayed
  call('HSET', k, 'reason', '')
  ready[1] = j
  return { 'ok', wakes(), '' }
end
if j.key then call('HSET', k, 'start', at and str(at) or '0') end -- it may have to wait for its key first
place(j, to, at, 'token', '', 'tries', '0', 'reason', '', 'ending', '0')
return { 'ok', wakes(), at and str(at) or '' }
