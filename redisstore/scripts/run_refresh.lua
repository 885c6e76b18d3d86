-- run_refresh: prolong the lease of a run.
-- KEYS: due
-- ARGV: job, token, lease ms, how far it is or '', '1' if the run is lent: the end of its lease is no crash, see due_sweep
-- reply: 1, or 0 if the run no longer owns the job
local id, token, lease, far, lent = arg(), arg(), num(), arg(), arg()
local held = call('HGET', key(id), 'token')
if held ~= token and held ~= token .. '+' then return 0 end -- see load
call('ZADD', P .. 'due', str(NOW + lease), id)
if lent == '1' then call('HSET', key(id), 'lent', token) end
if far ~= '' then
  call('HSET', key(id), 'progress', far)
  news.moved(id)
end
return 1
