-- engine_beat: note that an engine lives, and what its runs did since it told last; or with an empty info that it has stopped.
-- KEYS: due, that of the channels
-- ARGV: engine, info, ms after which it counts as dead, what its runs did since it started, ms of a span, how many spans are kept
-- reply: 1
local id, info, gone, total, span, spans = arg(), arg(), num(), arg(), num(), num()
local k, all = P .. 'engine:' .. id, P .. 'engines'
if info == '' then
  call('DEL', k)
  call('ZREM', all, id)
  return 1
end
local function numbers(text)
  local n = {}
  for v in string.gmatch(text or '', '%d+') do n[#n + 1] = tonumber(v) end
  return n
end
-- The first that an engine tells is what later ones are compared with: so what is told twice counts once.
local told = call('HGET', k, 'activity')
local now, before = numbers(total), numbers(told)
if #before > 0 and total ~= told and #now == #before and now[1] >= before[1] then
  local at = math.floor(NOW / span)
  local sum = numbers(call('HGET', P .. 'activity', str(at % spans)))
  if sum[1] ~= at then sum = { at } end
  for i = 1, #now do sum[i + 1] = str((sum[i + 1] or 0) + now[i] - before[i]) end
  sum[1] = str(at)
  call('HSET', P .. 'activity', str(at % spans), table.concat(sum, ' '))
  call('PEXPIRE', P .. 'activity', str(span * spans))
end
call('HSET', k, 'info', info, 'activity', total)
call('HSETNX', k, 'started', str(NOW))
call('PEXPIRE', k, gone)
call('ZADD', all, str(NOW), id)
call('ZREMRANGEBYSCORE', all, '-inf', str(NOW - gone))
call('PEXPIRE', all, gone)
return 1
