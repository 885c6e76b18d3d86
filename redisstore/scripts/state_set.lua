-- state_set: change a job's state from outside of its runs.
-- KEYS: due
-- ARGV: job, token, entry of the log or '', pairs, key, value, …, keys to remove, key, …
-- reply: {'ok' | 'gone', {}}
local id, token, entry, k = arg(), arg(), arg(), nil
if load(id).status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
remember(token)
k = key(id) .. ':s'
for _, command in ipairs({ 'HSET', 'HDEL' }) do
  local n = num() * (command == 'HSET' and 2 or 1)
  for i = 1, n, CHUNK do call(command, k, unpack(ARGV, cursor + i, cursor + math.min(i + CHUNK - 1, n))) end
  cursor = cursor + n
end
touch(id)
by_hand(id, entry)
return { 'ok', {} }
