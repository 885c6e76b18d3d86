-- alias_set: bind an alias to a job, or remove it.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: 'add' | 'remove', alias, job, token
-- reply: the job that has the alias now (add) or had it (remove), '' for none; 'many' if the job has as many as it may
local what, alias, id, token = arg(), arg(), arg(), arg()
local holder = call('HGET', P .. 'aliases', alias) or ''
if repeated(token) then return id end
if what == 'add' and holder == '' then
  if call('SCARD', P .. 'aliases:' .. id) >= 100 then return 'many' end -- job.MaxAliases
  remember(token)
  call('HSET', P .. 'aliases', alias, id)
  call('SADD', P .. 'aliases:' .. id, alias)
  return id
end
if what == 'remove' and holder == id then
  remember(token)
  call('HDEL', P .. 'aliases', alias)
  call('SREM', P .. 'aliases:' .. id, alias)
end
return holder
