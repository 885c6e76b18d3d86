-- letter_settle: take dead letters out of a port, from anywhere in it, and write messages in their place: to the ports that
-- what could not be handled came from, or, of a letter that was changed, to the same port again.
-- KEYS: due
-- ARGV: job, direction, port, token, head, entry for the log, letters, then of each, in their order: its index in
--       the port, messages, then of each: job, direction, port, message
-- reply: {'ok', {ready jobs}} | {'gone' | 'port' | 'moved', {}}
--        | {'gone' | 'port' | 'closed' | 'full' | 'large <values>', {}, index of the letter that cannot be
--           written, job, port}
local id, dir, port, token, head, entry = arg(), arg(), arg(), arg(), arg(), arg()
local k, at, to = key(id), {}, {}
local list = k .. ':' .. dir .. ':' .. port
for i = 1, num() do
  at[i] = num()
  for _ = 1, num() do to[#to + 1] = { at[i], arg(), arg(), arg(), arg() } end
end
if load(id).status == '' then return { 'gone', {} } end
local edges = wires(id, dir, port)
if not edges then return { 'port', {} } end
if repeated(token) then return { 'ok', {} } end
if (call('HGET', k, 'h.' .. dir .. '.' .. port) or '0') ~= head or call('LLEN', list) <= at[#at] then return { 'moved', {} } end

-- refused says why a message cannot be written.
local function refused(job, side, name)
  if load(job).status == '' then return 'gone' end
  if not wires(job, side, name) then return 'port' end
  if job == id and side == dir and name == port then return nil end -- a letter that was changed
  return closed(job, side, name) and 'closed' or not room(job, side, name) and 'full' or nil
end

local values = 0
for _, t in ipairs(to) do
  local why = refused(t[2], t[3], t[4])
  values = values + fanout.worth(t[2], t[3], t[4], 1, { { t[5] } })
  if not why and values - PORT * #to > MOST then why = 'large ' .. str(values) end
  if why then return { why, {}, t[1], t[2], t[4] } end
end
remember(token)
local first = 0 -- how many of them are the first of the port
while at[first + 1] == first do first = first + 1 end
local mark = '\0' .. token -- which no message is
for i = first + 1, #at do call('LSET', list, at[i], mark) end
if #at > first then call('LREM', list, #at - first, mark) end
if first > 0 then call('LTRIM', list, first, -1) end
call('HINCRBY', k, 'h.' .. dir .. '.' .. port, #at)
drained(id, dir, port, edges.limit)
retain.read(id)
sent = {}
for _, t in ipairs(to) do deliver(t[2], t[3], t[4], { t[5] }) end
log_run(id, entry)
return { 'ok', wakes() }
