-- pop: begin a run of the first ready job of a queue.
-- KEYS: due
-- ARGV: queue, generation of the bell that was heard, or '', process, number of its caller, what line.beginning() reads
-- reply: {job or '', what begin() in run.lua returns, {what is left}, how many jobs are ready there besides}: without a
--        run, of a job that the guard against hot loops has throttled, if there was one. If runs of more jobs began:
--        {token, job, what begin() in run.lua returns, …} of them
local queue, gen, process, caller = arg(), arg(), arg(), arg()
local b = line.beginning()
local pops = P .. 'pops:' .. process
probe()
if gen ~= '' and (call('HGET', P .. 'bells', queue) or '0') == gen then call('HINCRBY', P .. 'bells', queue, 1) end
local token, began = string.match(call('HGET', pops, caller) or '', '^(%S+)(.*)$')
local answer, j, snapshot = {}, nil, nil
if token == b.token then -- an earlier sending, whose answer was lost
  j, snapshot = line.repeated(answer, b, began)
else
  j, snapshot = line.pop(queue, b)
  if snapshot then
    began = b.token .. ' ' .. j.id
    if b.score then began = line.several(answer, b, j, snapshot, began) end
    call('HSET', pops, caller, began)
    call('PEXPIRE', pops, 60 * LOOK)
  end
end
local n = line.more(queue, true)
if snapshot or answer[5] then return { snapshot and j.id or '', snapshot or {}, wakes(), n, answer[5] } end
return { b.hot and b.hot[1] or '', b.hot and b.hot[2] or {}, wakes(), n }
