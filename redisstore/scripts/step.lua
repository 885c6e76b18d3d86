-- step: commit one transaction, and begin a run of the first job that it made ready in
-- the same queue, whose type the caller runs.
-- KEYS: due
-- ARGV: token, lease ms, batch, batches by type, bytes, what limits() in run.lua reads, types,
--       type…, then one transaction as for commit
-- reply: {{held, why, again, blocked}, {ready jobs}, job id or '', what begin() in run.lua returns}
local token, lease, most, batches, bytes = arg(), num(), num(), arg(), num()
local allowed = limits()
local types = {}
for _ = 1, num() do types[arg()] = true end
local result, last = transact()
local function answer(j)
  local snapshot = begin(j, token, lease, most, batches, bytes, allowed)
  if snapshot[1] ~= 'ok' then return end
  j.begun = true
  return { result, wakes(), j.id, snapshot }
end
for _, j in ipairs(ready) do
  if types[j.type] and j.queue == last.queue and not j.token then
    local out = answer(j)
    if out then
      -- A repeat of this call finds nothing ready: it looks here for what the first began.
      call('HSET', key(last.id), 'stepped', token .. ' ' .. j.id)
      return out
    end
  end
end
local before = last and call('HGET', key(last.id), 'stepped')
if before and string.sub(before, 1, #token + 1) == token .. ' ' then
  local j = load(string.sub(before, #token + 2))
  if j == last and j.status == S.running then result[3] = 1 end -- as it was before it began
  local out = answer(j)
  if out then return out end
end
return { result, wakes(), '', {} }
