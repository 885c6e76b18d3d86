-- secret_set: keep a secret with a job, which goes with it. Nothing but a look at this field shows it.
-- KEYS: due
-- ARGV: job, secret, encoded so that it has no byte 31
-- reply: {'ok' | 'gone', {}}
local id, secret = arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
call('HSET', key(id), 'secret', secret)
return { 'ok', {} }
