-- log_page: read entries of a tree's log, in their order or backwards.
-- KEYS: due
-- ARGV: tree, number of the first entry or '' for the first there is, '1' to go backwards, entries, bytes
-- reply: {number of the first entry, {entry…}, 1 if there are no more}
local root, from, back, n, bytes = arg(), num(), arg() == '1', num(), num()
local k, step = P .. 'l:' .. root, back and -1 or 1
local cut, len = tonumber(call('HGET', P .. 't:' .. root, 'cut') or '0'), call('LLEN', k)
local at = (from or back and cut + len or cut) - cut
at = back and math.min(at, len - 1) or math.max(at, 0)
local first, out, size = at, {}, 0
while at >= 0 and at < len and #out < n and size < bytes do
  local part = call('LRANGE', k, back and math.max(at - 49, 0) or at, back and at or at + 49)
  for i = 1, #part do
    if #out == n or size >= bytes then break end
    local entry = part[back and #part + 1 - i or i]
    out[#out + 1], size, at = entry, size + #entry, at + step
  end
end
return { str(cut + first), out, (at < 0 or at >= len) and 1 or 0 }
