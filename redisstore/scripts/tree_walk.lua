-- tree_walk: read jobs and what is below them, as far as a budget goes.
-- KEYS: due
-- ARGV: most jobs to read, or 0 for just those named; job…
-- reply: {{{id, fields, {port field, length, …}, defaults, next alarm or ''}…}, {jobs not read}}:
--        the first jobs of the list come first; children follow their parent, unless they are of another tree
local budget = num()
local alone = budget == 0
if alone then budget = #ARGV end
local todo, read, left = {}, {}, {}
for i = #ARGV, cursor + 1, -1 do todo[#todo + 1] = ARGV[i] end
while #todo > 0 and #read < budget do
  local id = table.remove(todo)
  local root = tree(id)
  local fields, lengths = call('HGETALL', key(id)), {}
  for f = 1, #fields, 2 do
    local dir, port = string.match(fields[f], '^([io])%.(.+)$')
    if dir then
      lengths[#lengths + 1] = fields[f]
      lengths[#lengths + 1] = call('LLEN', key(id) .. ':' .. dir .. ':' .. port)
    end
  end
  local next = call('ZSCORE', KEYS[1], '@' .. id)
  read[#read + 1] = { id, fields, lengths, call('HGETALL', key(id) .. ':d'), next and str(tonumber(next)) or '' }
  for _, child in ipairs(alone and {} or call('HVALS', key(id) .. ':c')) do
    if string.sub(child, 1, #root) == root then
      todo[#todo + 1] = child
    else
      left[#left + 1] = child
    end
  end
end
for _, id in ipairs(todo) do left[#left + 1] = id end
return { read, left }
