-- mail_done: forget orders that were carried out.
-- KEYS: due
-- ARGV: life of the server in which the orders were read, order…
-- reply: orders left
if arg() ~= LIFE then cursor = #ARGV end -- it may have lost what they did: they are carried out again
local some = cursor < #ARGV
for i = cursor + 1, #ARGV, CHUNK do call('XDEL', P .. 'outbox', unpack(ARGV, i, math.min(i + CHUNK - 1, #ARGV))) end
local left = call('XLEN', P .. 'outbox')
if some then -- all before the first that is left were carried out
  local first = left > 0 and tonumber(string.match(call('XRANGE', P .. 'outbox', '-', '+', 'COUNT', 1)[1][1], '^%d+')) - 1
  call('ZREMRANGEBYSCORE', P .. 'erased', '-inf', str(math.min(first or NOW * 1000, (NOW - 60000) * 1000)))
end
if left == 0 then
  call('DEL', P .. 'outbox')
  call('PEXPIRE', P .. 'erased', 60000)
  call('ZREM', P .. 'due', '!mail')
end
return left
