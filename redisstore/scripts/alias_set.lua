-- alias_set: bind an alias to a job, or remove it.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: 'add' | 'remove', alias, job
-- reply: the job that has the alias now (add) or had it (remove), '' for none
local what, alias, id = arg(), arg(), arg()
local holder = call('HGET', P .. 'aliases', alias) or ''
if what == 'add' and holder == '' then
  call('HSET', P .. 'aliases', alias, id)
  call('SADD', P .. 'aliases:' .. id, alias)
  return id
end
if what == 'remove' and holder == id then
  call('HDEL', P .. 'aliases', alias)
  call('SREM', P .. 'aliases:' .. id, alias)
end
return holder
