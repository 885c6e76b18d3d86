-- mail_done: forget orders that were carried out.
-- KEYS: due
-- ARGV: life of the server in which the orders were read, order…
-- reply: orders left
if arg() ~= LIFE then cursor = #ARGV end -- it may have lost what they did: they are carried out again
local last = cursor < #ARGV and tonumber(string.match(ARGV[#ARGV], '^%d+'))
for i = cursor + 1, #ARGV, CHUNK do call('XDEL', P .. 'outbox', unpack(ARGV, i, math.min(i + CHUNK - 1, #ARGV))) end
if last then call('ZREMRANGEBYSCORE', P .. 'erased', '-inf', str(math.min(last, (NOW - 60000) * 1000))) end
local left = call('XLEN', P .. 'outbox')
if left == 0 then
  call('DEL', P .. 'outbox')
  call('PEXPIRE', P .. 'erased', 60000)
  call('ZREM', P .. 'due', '!mail')
end
return left
