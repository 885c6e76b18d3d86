-- types_set: register types of jobs, and tell those who have read all of them that they changed.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: a random text, how many types, of each: `<queue> <type>`, what is known of it as JSON
-- reply: 'ok'
-- The version is another one after each call, also after a repeat: then others may have registered theirs in between.
local random, n, k = arg(), num(), P .. 'types'
for _ = 1, n do
  local name = arg()
  call('HSET', k, name, arg())
end
call('SET', k .. ':version', random .. ' ' .. str(NOW))
return 'ok'
