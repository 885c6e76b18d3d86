-- begin: start a run of a queued job.
-- KEYS: due
-- ARGV: job, token, lease ms, batch, batches by type, bytes, then what limits() in run.lua reads
-- reply: {'ok', now, what flat() makes of its fields, state or false, defaults, {{port, head, length, {messages}}…}}
--        or {'gone'}, {'status', status}, {'locked', ms}, {'rate', runs a minute}
local id = arg()
return begin(load(id), arg(), num(), num(), arg(), num(), limits())
