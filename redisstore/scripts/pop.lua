-- pop: begin a run of the first ready job of a queue.
-- KEYS: due
-- ARGV: queue, generation of the bell that was heard, or '', process, number of its caller, what line.beginning() reads
-- reply: {job or '', what begin() in run.lua returns, {what is left}, how many jobs are ready there besides}: without a
--        run, of a job that the guard against hot loops has throttled, if there was one
local queue, gen, process, caller = arg(), arg(), arg(), arg()
local b = line.beginning()
local pops = P .. 'pops:' .. process
probe()
if gen ~= '' and (call('HGET', P .. 'bells', queue) or '0') == gen then call('HINCRBY', P .. 'bells', queue, 1) end
local token, id = string.match(call('HGET', pops, caller) or '', '^(%S+) (%S+)$')
local j, snapshot
if token == b.token then -- an earlier sending, whose answer was lost
  j, snapshot = line.again(id, b)
else
  j, snapshot = line.pop(queue, b)
  if snapshot then
    call('HSET', pops, caller, b.token .. ' ' .. j.id)
    call('PEXPIRE', pops, 60 * LOOK)
  end
end
local n = line.more(queue)
if snapshot then return { j.id, snapshot, wakes(), n } end
return { b.hot and b.hot[1] or '', b.hot and b.hot[2] or {}, wakes(), n }
