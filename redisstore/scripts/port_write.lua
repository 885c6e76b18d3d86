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

-- enqueue writes what line.soon has left for later.
local function enqueue()
  for _, j in ipairs(ready) do
    if j.unwritten then line.enqueue(j) end
  end
end

-- write appends the messages, unless an earlier sending of this call has, which is its result; or it returns why it cannot,
-- or an error, behind which jobs that are ready stay so.
local function write()
  local j, edges, over = fanout.port(id, dir, port)
  if j.status == '' then return false, 'gone' end
  if not edges then return false, 'port' end
  local values = math.ceil(fanout.worth(id, dir, port, #items, { items }) - PORT)
  local why = over and 'closed' or not room(id, dir, port) and 'full' or values > MOST and 'large ' .. str(values)
  if why and repeated(token) then return true end
  if why then return false, why end
  local fine, new = pcall(remember, token, kept)
  if not fine then
    new = line.fault(new)
    if string.find(new, '^OOM') and repeated(token) then return true end
    return false, nil, new
  end
  if not new then return true end
  if entry ~= '' then sent = {} end
  line.soon = b and #edges == 0
  local done, fault = pcall(function()
    deliver(id, dir, port, items, hash)
    log_run(id, entry)
  end)
  line.soon = nil
  if done then return false end
  enqueue()
  return false, nil, line.fault(fault)
end

-- begun begins a run, and returns of which job, and what it sees. A repeat of this call looks
-- whether the first one began one of a job that the messages reached.
local function begun(again)
  local to = again and {} or ready
  local function reached(id, dir, port)
    local edges = wires(id, dir, port) or {}
    for _, ends in ipairs(edges) do
      for _, e in ipairs(ends) do reached(e[1], e[2], e[3]) end
    end
    local woken = dir == 'i' and id or load(id).parent
    if #edges == 0 and woken then to[#to + 1] = load(woken) end
  end
  if again then reached(id, dir, port) end
  for _, j in ipairs(to) do
    local mine = j.token == (again and b.token or false)
    local snapshot = mine and line.fits(b, j.type) and queues[j.queue] and line.follow(b, j)
    if snapshot then return j.id, snapshot end
  end
end

local again, why, fault = write()
if why then return { why, {} } end
if fault then return redis.error_reply(fault) end
local fine, first, snapshot
if b then fine, first, snapshot = pcall(begun, again) end -- what others did to that job's keys does not undo the write
enqueue()
if fine and snapshot then return { 'ok', wakes(), first, snapshot } end
return { 'ok', wakes(), '', {} }
