-- begin: start a run of a queued job.
-- KEYS: due
-- ARGV: job, what line.beginning() in run.lua reads
-- reply: {'ok', now, what flat() makes of its fields, state or false, defaults, {{port, head, length, {messages}}…},
--         what prefetch() in run.lua returns, what wakers() there returns, or nothing}, or what compact.begin() in
--         compact_run.lua returns, or {'gone'}, {'status', status},
--         {'locked', ms}, {'rate' or, of runs without progress, 'idle', runs a minute, type},
--         {'limit', name, places}
local id = arg()
if FULL and (compact.queued(id) or load(id)).status ~= S.terminating then
  return redis.error_reply(OOM) -- its commit would be refused
end
local b = line.beginning()
local _, snapshot = compact.begin(id, b)
return snapshot or begin(load(id), b)
