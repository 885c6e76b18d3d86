-- journal_create: create lone root jobs of payloads of a journal, in the order of their positions, each once: a
-- mark says up to which position of the epoch those of this shard were created, whatever became of the jobs.
-- KEYS: due
-- ARGV: epoch, ms for which the mark is kept, how many, then of each its position and what create_next() reads
-- reply: {how many were created by this call, {ready jobs}}
local mark, kept, n = P .. 'journal:' .. arg(), arg(), num()
local before, created, position = tonumber(call('GET', mark) or '-1'), 0, '-1'
for _ = 1, n do
  position = arg()
  local id = ahead(1)[1]
  if tonumber(position) <= before or call('HEXISTS', key(id), 'status') == 1 or erased(id) then
    node()
    skip()
  else
    create_next()
    created = created + 1
  end
end
if tonumber(position) > before then call('SET', mark, position, 'PX', kept) end
return { created, wakes() }
