-- tree_walk: read jobs and what is below them, as far as a budget goes.
-- KEYS: due
-- ARGV: most jobs to read, or 0 for just those named; job…
-- reply: {{{id, fields, {port field, length, …}, defaults, when it goes on by itself or ''}…}, {jobs not read}}:
--        the first jobs of the list come first; children follow their parent, unless they are of another tree
local budget = num()
local alone = budget == 0
if alone then budget = #ARGV end
local todo, read, left = {}, {}, {}
for i = #ARGV, cursor + 1, -1 do todo[#todo + 1] = ARGV[i] end

-- goes_on is when a job is looked at next without anything from outside.
local function goes_on(id, status, reason, alarms)
  local own = status == S.scheduled or status == S.queued and string.sub(reason, 1, 5) == 'rate:'
  local at = (own or alarms) and call('ZSCORE', KEYS[1], own and id or '@' .. id)
  return at and str(tonumber(at)) or ''
end

while #todo > 0 and #read < budget do
  local id = table.remove(todo)
  local root, k = tree(id), key(id)
  local fields, lengths, status, reason = call('HGETALL', k), {}, '', ''
  for f = 1, #fields, 2 do
    local name = fields[f]
    local side, dot = string.byte(name, 1, 2) -- a port is i.<name> or o.<name>; this is read thousands of times
    if dot == 46 and (side == 105 or side == 111) then
      local wired = string.find(fields[f + 1], ' %d') -- then nothing stays in it
      lengths[#lengths + 1] = name
      lengths[#lengths + 1] = wired and 0 or call('LLEN', k .. ':' .. string.char(side) .. ':' .. string.sub(name, 3))
    elseif name == 'status' then
      status = fields[f + 1]
    elseif name == 'reason' then
      reason = fields[f + 1]
    end
  end
  local more = call('EXISTS', k .. ':d', k .. ':c', k .. ':t') > 0 -- most jobs have none of them
  read[#read + 1] = {
    id, fields, lengths, more and call('HGETALL', k .. ':d') or {}, goes_on(id, status, reason, more),
  }
  for _, child in ipairs(more and not alone and call('HVALS', k .. ':c') or {}) do
    if string.sub(child, 1, #root) == root then
      todo[#todo + 1] = child
    else
      left[#left + 1] = child
    end
  end
end
for _, id in ipairs(todo) do left[#left + 1] = id end
return { read, left }
