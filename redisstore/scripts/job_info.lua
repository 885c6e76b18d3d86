-- job_info: everything about some jobs of one shard, and how much their ports hold.
-- KEYS: due
-- ARGV: job…
-- reply: {{fields, {port field, length, …}} of each; fields are empty for a job that does not exist}
local out = {}
for i, id in ipairs(ARGV) do
  local fields, lengths = call('HGETALL', key(id)), {}
  for f = 1, #fields, 2 do
    local dir, port = string.match(fields[f], '^([io])%.(.+)$')
    if dir then
      lengths[#lengths + 1] = fields[f]
      lengths[#lengths + 1] = call('LLEN', key(id) .. ':' .. dir .. ':' .. port)
    end
  end
  out[i] = { fields, lengths }
end
return out
