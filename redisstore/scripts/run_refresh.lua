-- run_refresh: prolong the lease of a run.
-- KEYS: due
-- ARGV: job, token, lease ms
-- reply: 1, or 0 if the run no longer owns the job
local id, token, lease = arg(), arg(), num()
local held = call('HGET', key(id), 'token')
if held ~= token and held ~= token .. '+' then return 0 end -- see load
call('ZADD', P .. 'due', str(NOW + lease), id)
return 1
