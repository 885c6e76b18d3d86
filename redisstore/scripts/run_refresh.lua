-- run_refresh: prolong the lease of a run.
-- KEYS: due
-- ARGV: job, token, lease ms, how far it is or ''
-- reply: 1, or 0 if the run no longer owns the job
local id, token, lease, far = arg(), arg(), num(), arg()
local held = call('HGET', key(id), 'token')
if held ~= token and held ~= token .. '+' then return 0 end -- see load
call('ZADD', P .. 'due', str(NOW + lease), id)
if far ~= '' then
  call('HSET', key(id), 'progress', far)
  news.moved(id)
end
return 1
