-- mail_done: forget orders that were carried out.
-- KEYS: due
-- ARGV: order…
-- reply: orders left
for i = cursor + 1, #ARGV, CHUNK do call('XDEL', P .. 'outbox', unpack(ARGV, i, math.min(i + CHUNK - 1, #ARGV))) end
local left = call('XLEN', P .. 'outbox')
if left == 0 then
  call('DEL', P .. 'outbox')
  call('ZREM', P .. 'due', '!mail')
end
return left
