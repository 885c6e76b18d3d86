-- record_read: read jobs that had no hash a moment ago: of trees that are records, or have got hashes since.
-- KEYS: due
-- ARGV: job…
-- reply: of each {fields and values in turn, names and IDs of its children in turn}, both empty if there is no such job
local out = {}
for i = cursor + 1, #ARGV do
  local k, fields, children = stem(ARGV[i]), compact.read(ARGV[i])
  if fields then
    out[#out + 1] = { fields, children }
  else
    out[#out + 1] = { call('HGETALL', k), call('HGETALL', k .. ':c') }
  end
end
return out
