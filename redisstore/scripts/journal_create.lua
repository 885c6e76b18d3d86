-- journal_create: create lone root jobs of payloads of a journal, in the order of their positions, each once: a
-- mark says up to which position of the epoch those of this shard were created, whatever became of the jobs.
-- KEYS: due
-- ARGV: epoch, ms for which the mark is kept, how many definitions of records, of each digest and what it says of the one job;
--       how many payloads; then of each its position and what create_next() reads; or, if there are definitions, its position,
--       the ID, digest, how long it is kept, what compact.create() calls shared and rest, In port, message
-- reply: {how many were created by this call, {ready jobs}}, or {what compact.why() says, {}}: nothing was done
local mark, kept, defined = P .. 'journal:' .. arg(), arg(), num()
for _ = 1, defined do
  local digest, text = arg(), arg()
  compact.define(digest, { text })
  local why = compact.why(digest)
  if why then return { why, {} } end
end
local n, before, created, position = num(), tonumber(call('GET', mark) or '-1'), 0, '-1'
local function fresh_record()
  local id, digest, keep, shared, rest, port, message = arg(), arg(), arg(), arg(), arg(), arg(), arg()
  if compact.of(id) or call('HEXISTS', key(id), 'status') == 1 or erased(id) then return end
  call('RPUSH', stem(id) .. ':i:' .. port, message)
  compact.create(id, '-', digest, keep, shared, '0', rest)
  call('ZADD', P .. 'index', 0, id)
  created = created + 1
end
for _ = 1, defined > 0 and n or 0 do
  position = arg()
  if tonumber(position) > before then fresh_record() else cursor = cursor + 7 end
end
for _ = 1, defined > 0 and 0 or n do
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
