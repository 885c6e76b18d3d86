-- port_write: append messages to a port from outside of runs; if asked, begin a run of the first
-- job that this made ready, of those that the caller can run.
-- KEYS: due
-- ARGV: job, direction, port, token, ms for which it is remembered, hash or '', '1' to wake nobody, entry for the log or '',
--       messages, message…, what line.following() in run.lua reads, and unless that is '0': queues, queue…
-- reply: {'ok', {ready jobs}, job or '', what begin() in run.lua returns}
--        or {'gone' | 'port' | 'closed' | 'full' | 'large <values>', {}}
local id, dir, port, token, kept, hash = arg(), arg(), arg(), arg(), num(), tonumber(arg())
quiet = arg() == '1'
local entry, items = arg(), list()
local b, queues = line.following(), {}
for _ = 1, b and num() or 0 do queues[arg()] = true end
if load(id).status == '' then return { 'gone', {} } end
if not wires(id, dir, port) then return { 'port', {} } end
local again = repeated(token)
if not again then
  if closed(id, dir, port) then return { 'closed', {} } end
  if not room(id, dir, port) then return { 'full', {} } end
  local values = math.ceil(fanout.worth(id, dir, port, #items, { items }) - PORT)
  if values > MOST then return { 'large ' .. str(values), {} } end
  remember(token, kept)
  if entry ~= '' then sent = {} end
  deliver(id, dir, port, items, hash)
  log_run(id, entry)
end

-- reached adds those to a list that messages to a port can make ready.
local function reached(to, id, dir, port)
  local edges = wires(id, dir, port) or {}
  for _, ends in ipairs(edges) do
    for _, e in ipairs(ends) do reached(to, e[1], e[2], e[3]) end
  end
  local woken = dir == 'i' and id or load(id).parent
  if #edges == 0 and woken then to[#to + 1] = load(woken) end
  return to
end

-- begun begins a run, and returns of which job, and what it sees. A repeat of this call looks
-- whether the first one began one of a job that the messages reached.
local function begun()
  for _, j in ipairs(again and reached({}, id, dir, port) or ready) do
    local mine = j.token == (again and b.token or false)
    local snapshot = mine and line.fits(b, j.type) and queues[j.queue] and line.follow(b, j)
    if snapshot then return j.id, snapshot end
  end
end

local fine, first, snapshot
if b then fine, first, snapshot = pcall(begun) end -- what others did to that job's keys does not undo the write
if fine and snapshot then return { 'ok', wakes(), first, snapshot } end
return { 'ok', wakes(), '', {} }
