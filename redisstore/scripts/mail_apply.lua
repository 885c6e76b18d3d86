-- mail_apply: carry out orders from another shard's outbox, each once.
-- KEYS: due, or that of the hub, weir:{<namespace>}:due
-- ARGV: life of the server, the other shard, orders, then of each: number, order (parts with \31 between)
-- reply: {'ok', {ready jobs}, orders carried out: the others are to be sent again}
--        or {'life', life of the server} if it is another one: it may have lost what led to the orders
if arg() ~= LIFE then return { 'life', LIFE } end
local from, count, last, seq = arg(), num(), nil, nil

-- written writes messages of an order, of which an earlier call may have written some, and returns how many of them
-- are written, if that is not all.
local function written(id, port, items)
  local before = tonumber(string.match(call('HGET', P .. 'inbox', from .. ' part') or '', '^' .. seq .. ' (%d+)$') or '0')
  local upto = math.min(#items, before + (fanout.piece(fanout.reach(id, 'i', port))))
  deliver(id, 'i', port, before == 0 and upto == #items and items or { unpack(items, before + 1, upto) })
  if before > 0 and upto == #items then call('HDEL', P .. 'inbox', from .. ' part') end
  return upto < #items and upto
end

local DO = {
  wake = function(id, name) wake(id, nil, name) end,
  terminate = function(id) terminate(id, true) end,
  delete = function(id) remove(id, 'delete') end,
  orphan = function(parent, name, child)
    if call('HGET', key(parent) .. ':c', name) == child then call('HDEL', key(parent) .. ':c', name) end
  end,
  write = function(id, port, who, ...) -- who: the channel of the messages, or the job of another tree that wrote them
    local why = load(id).status == '' and 'the job is gone' or not wires(id, 'i', port) and 'it has no such port'
    local over = why or closed(id, 'i', port) and 'the port is closed'
    if not over then
      if hub.multiplies({ ... }, fanout.reach(id, 'i', port)) then return hub.LATER end
      return written(id, port, { ... })
    elseif string.sub(who, 1, 1) ~= '/' then
      return missed(who, id, port, select('#', ...), over)
    elseif why then
      mail('hub', 'drop', who, id .. ' ' .. port)
    end
  end,
  launch = function(id) return launch(id, 2) end, once = launch_once,
  note = function(id, text) return load(id).status ~= '' and note(id, text) and nil end,
  place = function(what, ...) places[what](...) end,
  publish = function(channel, ...) return hub.publish(channel, { ... }) end,
  drop = hub.drop,
  subscribe = hub.subscribe,
  unsubscribe = hub.unsubscribe,
  forget = hub.forget,
  claim = function(id, alias) -- another job that has it keeps it: the new one's creation is committed
    if call('HSETNX', P .. 'aliases', alias, id) == 1 then return call('SADD', P .. 'aliases:' .. id, alias) and nil end
    local holder = call('HGET', P .. 'aliases', alias)
    mail(id, 'note', id, '"it did not get the alias \\"' .. alias .. '\\", which job ' .. holder .. ' has"')
  end,
  workkit = function(name, id, root) kit.ended(name, id, root) end,
  watch = function(on)
    if on == '1' then call('SET', P .. 'watch', '1') else call('DEL', P .. 'watch') end
    news.watched = nil
  end,
}
last = tonumber(call('HGET', P .. 'inbox', from) or '0')
local done = 0
while done < count and spent < PIECE do
  seq = arg()
  local order, number = arg(), tonumber(seq)
  if number > last then
    words = {}
    for word in string.gmatch(order .. '\31', '([^\31]*)\31') do words[#words + 1] = word end
    local what = DO[words[1]]
    call('HSET', P .. 'inbox', from, seq)
    local some = what and what(unpack(words, 2, math.min(#words, ORDER + 9)))
    if some == hub.LATER then
      call('HSET', P .. 'inbox', from, str(last))
      break
    elseif some then -- the rest of it is for the next call
      call('HSET', P .. 'inbox', from, str(last), from .. ' part', seq .. ' ' .. some)
      break
    end
    last = number
  end
  done = done + 1
end
if FULL and done == 0 and spent == 0 then return redis.error_reply(OOM) end
return { 'ok', wakes(), done }
