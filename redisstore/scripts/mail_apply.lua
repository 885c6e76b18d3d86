-- mail_apply: carry out orders from another shard's outbox, each once.
-- KEYS: due, or that of the hub, weir:{<namespace>}:due
-- ARGV: life of the server, the other shard, orders, then of each: number, order (parts with \31 between)
-- reply: {'ok', {ready jobs}}
--        or {'life', life of the server} if it is another one: it may have lost what led to the orders
if arg() ~= LIFE then return { 'life', LIFE } end
local from, last = arg(), nil
local count = num()
local DO = {
  wake = function(id) wake(id) end,
  terminate = function(id) terminate(id, true) end,
  delete = function(id) remove(id) end,
  orphan = function(parent, name, child)
    if call('HGET', key(parent) .. ':c', name) == child then call('HDEL', key(parent) .. ':c', name) end
  end,
  write = function(id, port, channel, item)
    if load(id).status ~= '' and wires(id, 'i', port) then
      if not closed(id, 'i', port) then deliver(id, 'i', port, { item }) end
      return
    end
    if channel ~= '' then mail('hub', 'unsubscribe', channel, id .. ' ' .. port) end
  end,
  publish = function(channel, item) publish(channel, item) end,
  subscribe = function(channel, who) subscribe(channel, who) end,
  unsubscribe = function(channel, who) unsubscribe(channel, who) end,
  forget = function(id) forget(id) end,
  watch = function(on)
    if on == '1' then call('SET', P .. 'watch', '1') else call('DEL', P .. 'watch') end
    watched = nil
  end,
}
last = tonumber(call('HGET', P .. 'inbox', from) or '0')
for _ = 1, count do
  local seq, parts = num(), {}
  local order = arg()
  if seq > last then
    call('HSET', P .. 'inbox', from, str(seq))
    last = seq
    for part in string.gmatch(order .. '\31', '([^\31]*)\31') do parts[#parts + 1] = part end
    local what = DO[parts[1]]
    if what then what(unpack(parts, 2)) end
  end
end
return { 'ok', wakes() }
