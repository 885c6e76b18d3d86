-- commit: apply transactions of job deltas, each up to its first delta that no longer holds;
-- behind one, if asked, begin a run of the first job that it made ready in the same queue,
-- whose type the caller runs.
-- KEYS: due
-- ARGV: transactions, then of each: what following() in run.lua reads; deltas, then of each what
--       delta() in delta.lua reads
-- Transactions behind those that were enough for one call are to be sent again.
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

-- refused tells whether a transaction has to wait for memory: all have but those that end the run of a job that is to
-- end, so that it can be deleted.
local function refused(d) return FULL and (d.outcome == 'checkpoint' or load(d.id).status ~= S.terminating) end

-- settle applies a transaction, behind which the arguments go on, and returns its answer.
local function settle(b, deltas, behind)
  if refused(deltas[1]) then error({ err = OOM }) end
  local before = #ready
  local result, last = transact(deltas)
  local answer = { result, '', {} }
  if b and not FULL then go_on(answer, b, last, before) end
  cursor = behind
  return answer
end

-- break_off makes good what it can of a transaction that an error of Redis ended: keys that others have changed, which
-- is no fault of the transactions beside it. This is a function as the embedded server gives the text below other variables
-- than those of functions, once an error was caught.
local function break_off(behind)
  if counted then pcall(recounted) end
  local entered = {} -- speculatively, or about to be: they sleep, and what was written to them may be there
  for id, j in pairs(jobs) do
    if j.woken or j.slept then entered[#entered + 1] = id end
  end
  jobs, wired, writer, counted, guessed, quiet, sent, cursor = {}, {}, nil, nil, nil, false, nil, behind
  for _, id in ipairs(entered) do pcall(wake, id) end
  pcall(quiesce)
end

local out, all = {}, num()
while #out < all and (#out == 0 or spent < PIECE) do
  local b, deltas, behind = following(), transaction(), cursor
  local done, answer = pcall(settle, b, deltas, behind)
  if not done then
    local why = type(answer) == 'table' and answer.err or tostring(answer)
    if not FULL and string.find(why, '^OOM') then return redis.error_reply(why) end -- so far nothing was written
    answer = { {}, '', {}, why }
    break_off(behind)
  end
  out[#out + 1] = answer
end
return { out, wakes() }
