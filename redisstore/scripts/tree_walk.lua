-- tree_walk: read jobs and what is below them, as far as a budget goes, and some half a MiB.
-- KEYS: due
-- ARGV: most jobs to read, or 0 for just those named; job, or '<job> <from>' for the children of one with very many…
-- reply: {{{id, what flat() in base.lua makes of its fields, {port field, length, …}, defaults, when it goes on by
--        itself or '', of those just named the place among those that woke their parent or '', retain.ends(), lease or ''}…},
--        {what was not read}}: the first jobs of the list come first; children follow their parent, unless of another tree
local most = num()
local alone, budget = most == 0, most > 0 and most or #ARGV
local todo, read, left, bytes = {}, {}, {}, 0 -- of what was read, about
for i = #ARGV, cursor + 1, -1 do todo[#todo + 1] = ARGV[i] end

-- What the fields of a job mean is worked out once a script, as jobs have the same ones:
local lists = {} -- what follows the job's key in the key of a port's list, by field; false: no port
local flows = {} -- whether a port with this descriptor is wired, so that nothing stays in it
local function lengths(k, fields)
  local out, texts = {}, { status = '', reason = '', by = '', parent = '', name = '', retain = '' }
  for f = 1, #fields, 2 do
    local name, value = fields[f], fields[f + 1]
    bytes = bytes + #value
    local list = lists[name]
    if list == nil then
      list = string.gsub(name, '^([io])%.', ':%1:')
      lists[name] = list ~= name and list
      list = lists[name]
    end
    if list then
      if flows[value] == nil then flows[value] = string.find(value, ' %d') and not string.find(value, ' >', 1, true) end
      out[#out + 1] = name
      out[#out + 1] = flows[value] and 0 or call('LLEN', k .. list)
    elseif texts[name] then
      texts[name] = value
    end
  end
  return out, texts
end

local function due(member) local at = call('ZSCORE', KEYS[1], member) return at and str(tonumber(at)) end

-- descend adds children, each behind its name, to what is to be read, or leaves them to another script.
local function descend(id, children)
  local root = tree(id)
  for n = 2, #children, 2 do
    local list = string.sub(children[n], 1, #root) == root and todo or left
    list[#list + 1] = children[n]
  end
end

local function visit(id)
  local k, fields, below = stem(id), compact.read(id)
  fields = fields or call('HGETALL', k)
  local sizes, texts = lengths(k, fields)
  local more = below and #below > 0 or call('EXISTS', k .. ':d', k .. ':c', k .. ':t') > 0 -- most jobs have none of them
  local own = texts.status == S.scheduled or texts.status == S.queued and texts.reason:find('^rate:')
  local at, lease = (own or more) and due(own and id or '@' .. id), texts.status == S.running and due(id)
  local woke = alone and texts.parent ~= '' and call('ZSCORE', stem(texts.parent) .. ':w', texts.name)
  local defaults = more and call('HGETALL', k .. ':d') or {}
  for _, text in ipairs(defaults) do bytes = bytes + #text end
  local all = flat(fields, texts.reason, texts.by)
  read[#read + 1] = { id, all, sizes, defaults, at or '', woke or '', retain.ends(id, texts), lease or '' }
  if not more or alone then return end
  if not below and call('HLEN', k .. ':c') > CHUNK then
    left[#left + 1] = id .. ' 0'
  else
    descend(id, below or call('HGETALL', k .. ':c'))
  end
end

while #todo > 0 and #read < budget and bytes < PIECE_BYTES do
  local entry = table.remove(todo)
  local id, from = string.match(entry, '^(%S+) (%d+)$')
  if id then
    local page = call('HSCAN', stem(id) .. ':c', from, 'COUNT', budget)
    if page[1] ~= '0' then left[#left + 1] = id .. ' ' .. page[1] end
    descend(id, page[2])
  else
    visit(entry)
  end
end
for _, id in ipairs(todo) do left[#left + 1] = id end
return { read, left }
