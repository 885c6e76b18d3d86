-- mail.lua: what a script leaves to others: orders for other shards, and work that is too long for it.

-- mail leaves an order for the shard of another tree (or of the channels, with to =
-- 'hub') in the outbox. Orders are delivered in order, at once by the process that ran
-- this script or later by the sweeper, and applied exactly once by their number, which it returns. What the order is
-- may be a list, so that many messages are joined once.
function mail(to, what, ...)
  -- The number also follows the clock: after a failover that lost the last ones it must
  -- not come again, for the other shard would take it for one that it knows.
  local seq = str(math.max(tonumber(call('GET', P .. 'mailed') or '0') + 1, NOW * 1000))
  call('SET', P .. 'mailed', seq)
  local order = table.concat(type(what) == 'table' and what or { what, ... }, '\31')
  call('XADD', P .. 'outbox', seq .. '-1', 'to', to, 'order', order)
  call('ZADD', P .. 'due', str(NOW + LOOK), '!mail')
  urgent['!mail'] = true
  spent = spent + 8
  return seq
end

-- portions calls fn for one part of some messages after another, each small enough for one order: with the first
-- and the last of it.
local function portions(vals, fn)
  local first, size = 1, 0
  for i = 1, #vals do
    size = size + #vals[i]
    if i == #vals or i - first + 1 == ORDER or size >= ORDER_BYTES then
      fn(first, i)
      first, size = i + 1, 0
    end
  end
end

-- mail_all leaves orders about some messages, which come last in them.
local function mail_all(to, vals, ...)
  local head = { ... }
  portions(vals, function(first, last)
    local order = { unpack(head) }
    for i = first, last do order[#order + 1] = vals[i] end
    mail(to, order)
  end)
end

-- missed has the log of the job that wrote messages to one of another tree say why they did not arrive: its run, which
-- could not know, is committed.
local function missed(writer, id, port, n, why)
  if writer == '' then return end
  local what = n == 1 and '1 message' or str(n) .. ' messages'
  mail(writer, 'note', writer, '"' .. what .. ' to port \\"' .. port .. '\\" of job ' .. id .. ' did not arrive: ' .. why .. '"')
end

-- retain.told tells whoever is to know that a root has settled. whom: job and In port, or `workkit:` and an entry of a
-- schedule of WorkKit, and the name of that.
function retain.told(j, whom)
  local id, port = string.match(whom, '^(%S+) (%S+)$')
  local entry = string.match(id, '^workkit:(.+)$')
  if entry then return mail('hub', 'workkit', port, entry, j.id) end
  mail(id, 'write', id, port, '', '{"job":"' .. j.id .. '","status":"' .. j.status .. '"}')
end

-- chores leaves work that is too long for one script: what to do with whole subtrees,
-- each as '<what> <job ID>'. What jobs at work wait for is soon: it goes before the rest.
local function chores(list, soon)
  if #list == 0 then return end
  for i = 1, #list, CHUNK do
    call(soon and 'LPUSH' or 'RPUSH', P .. 'chores', unpack(list, i, math.min(i + CHUNK - 1, #list)))
  end
  call('ZADD', P .. 'due', str(NOW + LOOK), '!chores')
  urgent['!chores'] = true
end

local function chore(what, id, soon) chores({ what .. ' ' .. id }, soon) end
