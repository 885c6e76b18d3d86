-- commit: apply transactions of job deltas, each up to its first delta that no longer holds;
-- behind one, if asked, begin a run of a ready job in the same queue.
-- KEYS: due
-- ARGV: transactions, and what compact.ahead() in compact_end.lua reads; then of each: what line.following() in run.lua
--       reads; deltas, then of each what delta() in delta.lua reads
-- Transactions behind those that were enough for one call are to be sent again.
-- reply: {{held, why, again, blocked, space, 1 if the caller has the first job to go on with, joined by \31; job id or '',
--        what begin() in run.lua returns, '', {token, job id, what begin() returns, … of more jobs}} of each transaction,
--        or {'', '', '', error}, {what is left}}

-- refused tells whether a transaction has to wait for memory: all do, but those that end the run of a job that is to end,
-- which no record has.
local function refused(d)
  return FULL and (d.outcome == 'checkpoint' or compact.of(tree(d.id)) or load(d.id).status ~= S.terminating)
end

-- made makes a transaction true, and returns what transact() does, and its first job. One of a record may have to come otherwise.
local function made(deltas)
  if deltas.record then return compact.commit(deltas) end
  if refused(deltas[1]) then error({ err = OOM }) end
  local result, last = plain.transact(deltas)
  local first = load(deltas[1].id)
  line.round = first.round
  if not result then result, last = transact(deltas) end
  return result, last, first
end

-- settle applies a transaction, behind which the arguments go on, and returns its answer.
local function settle(b, on, deltas, behind)
  local before = #ready
  local result, last, first = made(deltas)
  local answer = { result, '', '' }
  if b and not FULL then
    line.go_on(answer, b, last, before, first)
  elseif last and not last.token and (b or not on) then
    line.idle[last.queue] = true
  end
  line.arrive()
  cursor, line.round, answer[1] = behind, nil, deltas.record and result or table.concat(result, '\31')
  return deltas.record and not b and result or answer
end

-- break_off makes good what it can of a transaction that an error of Redis ended: keys that others have changed, which
-- is no fault of the transactions beside it.
local function break_off(behind)
  if counted then pcall(recounted) end
  local entered = {} -- speculatively, or about to be: they sleep, and what was written to them may be there
  for id, j in pairs(jobs) do
    if j.woken or j.slept then entered[#entered + 1] = id end
  end
  line.round, line.out = nil, nil
  pcall(line.arrive)
  ready = {} -- the rest is in `due`
  jobs, wired, writer, counted, guessed, quiet, sent, cursor, compact.told = {}, {}, nil, nil, nil, false, nil, behind, nil
  for _, id in ipairs(entered) do pcall(wake, id) end
  pcall(quiesce)
  pcall(line.arrive)
  ready = {}
end

-- all_of_them settles the transactions of the call, as many as are enough for one, and returns the reply.
local function all_of_them()
  local out, all = {}, compact.ahead()
  while #out < all and (#out == 0 or spent < PIECE) do
    local b, on = line.following()
    local deltas, behind = transaction(), cursor
    local done, answer = pcall(settle, b, on, deltas, behind)
    if not done then
      local why = line.fault(answer)
      if not FULL and string.find(why, '^OOM') then return redis.error_reply(why) end -- so far nothing was written
      answer = { '', '', '', why }
      break_off(behind)
    end
    out[#out + 1] = answer
  end
  local fine, left = pcall(compact.wakes)
  return { out, fine and left or {} } -- else the sweeper finds it
end

return all_of_them() -- the embedded server gives the text here other variables than functions, once an error was caught
