-- workkit_move: move entries of a schedule of WorkKit that are due into Weir: each that is still as it was seen.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, entries, then of each: what, member, score, ID, SHA-1 of its JSON or '' for none, score of its
--       next run or '', root of a tree, text
--       what: launch (the tree that the text, an order, creates), drop (a member without entry, or one too many),
--       refuse (note why, which is the text, and leave it as it is)
-- reply: {'ok', {ready jobs}, {1 or 0 for each: whether it was as seen}}
local name, count, done = arg(), num(), {}
local jobs, queue = name .. ':jobs', name .. ':next'

-- launched creates a tree for an entry, and puts it off to its next run, if there is one.
local function launched(member, id, later, root, order)
  mail(root, order)
  if later ~= '' then return kit.put(name, member, later) end
  call('HSET', kit.key(name, 'last'), id, root .. ' ' .. member)
  call('ZREM', queue, member)
  call('ZREM', kit.key(name, 'order'), member)
end

for i = 1, count do
  local what, member, score, id, sum, later, root, text = arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()
  local raw = call('HGET', jobs, id)
  local seen = call('ZSCORE', queue, member) == score and sum == (raw and redis.sha1hex(raw) or '')
  done[i] = seen and 1 or 0
  if seen and what == 'refuse' then
    call('HSETNX', kit.key(name, 'refused'), id, text)
  elseif seen then
    if what == 'launch' then launched(member, id, later, root, text) end
    if what == 'drop' then
      call('ZREM', queue, member)
      call('ZREM', kit.key(name, 'order'), member)
    end
    call('HDEL', kit.key(name, 'refused'), id)
  end
end
return { 'ok', wakes(), done }
