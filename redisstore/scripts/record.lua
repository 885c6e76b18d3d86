-- record.lua: what a run did: what it read, its state, children, messages, log, closes.

local record, log_packs
do -- Lua allows few local names
  -- spread writes the messages and the log of one run.
  local function spread(d, p)
    if p.entry ~= '' then sent = sent or {} end
    for _, w in ipairs(p.writes) do
      local into = sent
      if w.unlogged then sent = nil end
      if tree(w.id) == tree(d.id) then
        deliver(w.id, w.dir, w.port, w.items, w.hash)
      else -- an adopted child
        mail_all(w.id, w.items, 'write', w.id, w.port, d.id)
      end
      sent = into
    end
    for _, text in ipairs(p.log) do note(d.id, text) end
    log_run(d.id, p.entry)
  end

  -- straight tells whether all messages that are written to a port go to one place.
  local function straight(id, dir, port)
    repeat
      local edges = wires(id, dir, port)
      if not edges or #edges > 1 or dir == 'o' and #edges.channels > 0 then return false end
      local ends = edges[1]
      if ends then
        if #ends > 1 then return false end
        id, dir, port = unpack(ends[1])
      end
    until not ends
    return true
  end

  -- unpacked writes the messages and the log of runs that are packed one by one.
  local function unpacked(d)
    local at, to = 0, d.to
    for _, p in ipairs(d.packs) do
      local entries, n = {}, 0
      for entry in string.gmatch(p.entries .. '\31', '([^\31]*)\31') do entries[#entries + 1] = entry end
      for count in string.gmatch(p.counts, '%d+') do
        local items = {}
        for i = 1, tonumber(count) do items[i] = to.items[at + i] end
        at, n = at + #items, n + 1
        local w = { id = to.id, dir = to.dir, port = to.port, unlogged = to.unlogged, items = items }
        spread(d, { writes = { w }, entry = entries[n] or '', log = NONE })
      end
    end
  end

  -- log_packs writes the log of runs that are packed, given where their messages went, or nil.
  function log_packs(d, where)
    local from = where and where.from
    for _, p in ipairs(d.packs) do
      log_pack(d.id, p, where and p.n > 0 and moved(where, from, p.n) or '')
      from = from and from + p.n
    end
  end

  -- spread_all writes the messages and the log of runs that are packed: the messages at once, if all of them come to
  -- one place.
  local function spread_all(d)
    local to, where = d.to, nil
    if to then
      if tree(to.id) ~= tree(d.id) or not straight(to.id, to.dir, to.port) then return unpacked(d) end
      sent = not to.unlogged and {} or nil
      deliver(to.id, to.dir, to.port, to.items)
      where, sent = sent and sent[1], nil
    end
    log_packs(d, where)
  end

  -- record writes what a run did: reads, state, children, messages, log, closes.
  function record(d)
    local k = key(d.id)
    for _, t in ipairs(d.takes) do
      local field = t.dir .. '.' .. t.port
      call('LTRIM', key(t.id) .. ':' .. t.dir .. ':' .. t.port, t.n, -1)
      call('HINCRBY', key(t.id), 'h.' .. field, t.n)
      drained(t.id, t.dir, t.port, t.limit)
      if t.id == d.id then load(d.id).port = t.port end
    end
    chunked('HSET', k .. ':s', d.set, d.nset)
    chunked('HDEL', k .. ':s', d.unset, d.nunset)
    local after = cursor
    cursor = d.spawn
    for _ = 1, d.nspawn do create_next() end
    if d.nspawn > 0 then count_created(d.id, d.nspawn) end
    cursor = after
    if d.packs then spread_all(d) end
    for _, p in ipairs(d.parts) do spread(d, p) end
    for _, v in ipairs(d.defaults) do set_default(v.id, v.dir, v.port, v.set and v.value or nil) end
    for _, port in ipairs(d.closes) do finish(d.id, 'o', port) end
    if d.nports >= 0 then
      cursor = d.ports - 1
      set_ports(d.id)
      cursor = after
    end
    for _, after in ipairs(d.wakes) do
      local first = after < 0 and tonumber(call('ZRANGE', k .. ':t', 0, 0)[1])
      if not first or first > NOW - after then alarm(d.id, NOW + math.abs(after)) end
    end
    for i = 1, #d.launches, 2 do mail(d.launches[i], d.launches[i + 1]) end
    for i = 1, #d.aliases, 2 do mail('hub', 'claim', d.aliases[i], d.aliases[i + 1]) end
    if d.woken > 0 or #d.looked > 0 or #d.released > 0 then noticed(d) end
    if d.failure ~= '' then
      call('LPUSH', k .. ':e', d.failure)
      call('LTRIM', k .. ':e', 0, 19)
    end
  end
end
