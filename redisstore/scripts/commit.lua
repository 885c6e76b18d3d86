-- commit: apply transactions of job deltas, each up to its first delta that no longer holds;
-- behind one, if asked, begin a run of the first job that it made ready in the same queue,
-- whose type the caller runs.
-- KEYS: due
-- ARGV: transactions, then of each: what following() in run.lua reads; deltas, then of each what
--       delta() in delta.lua reads
-- reply: {{{held, why, again, blocked, space}, job id or '', what begin() in run.lua returns} of each
--        transaction, or {{}, '', {}, error}, {ready jobs}}

-- started begins a run of a job, if it can now, as part of a transaction's answer.
local function started(answer, b, j)
  local snapshot = follow(b, j)
  if not snapshot then return false end
  answer[2], answer[3] = j.id, snapshot
  return true
end

-- go_on begins a run behind a transaction whose last job is given, and that made those ready
-- that come after the first so many.
local function go_on(answer, b, last, before)
  for n = before + 1, #ready do
    local j = ready[n]
    if b.types[j.type] and j.queue == last.queue and not j.token and started(answer, b, j) then
      -- A repeat of this call finds nothing ready: it looks here for what the first began.
      call('HSET', key(last.id), 'stepped', b.token .. ' ' .. j.id)
      return
    end
  end
  local stepped = last and call('HGET', key(last.id), 'stepped')
  if not stepped or string.sub(stepped, 1, #b.token + 1) ~= b.token .. ' ' then return end
  local j = load(string.sub(stepped, #b.token + 2))
  if j == last and j.status == S.running then answer[1][3] = 1 end -- as it was before it began
  started(answer, b, j)
end

-- settle applies a transaction and returns its answer.
local function settle(b, deltas)
  local before = #ready
  local result, last = transact(deltas)
  local answer = { result, '', {} }
  if b then go_on(answer, b, last, before) end
  return answer
end

local out = {}
for i = 1, num() do
  local b, deltas, behind = following(), transaction(), cursor
  local done, answer = pcall(settle, b, deltas)
  if not done then -- keys that others have changed: that is no fault of the transactions beside it
    if counted then pcall(recounted) end
    answer = { {}, '', {}, type(answer) == 'table' and answer.err or tostring(answer) }
    jobs, wired, writer, counted, guessed, quiet, sent = {}, {}, nil, nil, nil, false, nil
  end
  out[i], cursor = answer, behind
end
return { out, wakes() }
