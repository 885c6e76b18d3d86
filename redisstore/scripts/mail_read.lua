-- mail_read: read the first orders of the outbox.
-- KEYS: due
-- ARGV: most orders, bytes after which no further one is read
-- reply: {life of the server, {entry, to, order, …}}
local most, bytes, out, size, from = num(), num(), {}, 0, '-'
while #out < 3 * most and size < bytes do
  local page = call('XRANGE', P .. 'outbox', from, '+', 'COUNT', 10)
  for _, entry in ipairs(page) do
    if #out >= 3 * most or size >= bytes then break end
    out[#out + 1], out[#out + 2], out[#out + 3] = entry[1], entry[2][2], entry[2][4]
    size = size + #entry[2][4]
    from = '(' .. entry[1]
  end
  if #page < 10 then break end
end
return { LIFE, out }
