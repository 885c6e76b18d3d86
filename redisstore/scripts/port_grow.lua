-- port_grow: raise the limit of a port on which jobs wait for each other, and say so in the
-- log of the tree.
-- KEYS: due
-- ARGV: job, In port, limit now, limit to be, note (JSON)
-- reply: {'ok' | 'gone' | 'port', {ready jobs}}
local id, port, from, to, text = arg(), arg(), arg(), arg(), arg()
if load(id).status == '' then return { 'gone', {} } end
local field = 'i.' .. port
local d = call('HGET', key(id), field)
if not d then return { 'port', {} } end
if string.match(d, '^%d+') == from then
  call('HSET', key(id), field, to .. string.sub(d, #from + 1))
  note(id, text)
  relieve(id, port, tonumber(to))
end
return { 'ok', wakes() }
