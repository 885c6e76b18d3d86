-- bell_renew: give a bell that asynq holds, but no server will hear any more, a new generation.
-- KEYS: due
-- ARGV: queue, generation
-- reply: {what is left}
local queue, gen = arg(), arg()
if (call('HGET', P .. 'bells', queue) or '0') == gen then
  call('HINCRBY', P .. 'bells', queue, 1)
  line.more(queue)
end
return wakes()
