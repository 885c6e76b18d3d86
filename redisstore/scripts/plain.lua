-- plain.lua: transactions of runs that do what most do: each reads one In port at most, changes its state, writes to one Out
-- port, which keeps its messages or leads to one In port, closes it, and completes, goes to sleep or is queued again. All that is
-- asked of a job is read with one command, and what changes is written with one. Everything is checked first: if anything is not
-- that plain, nothing is written, and transact() in tx.lua does it all, which says what is right: TestPlainTransactions compares
-- the two.

local plain = {}
do -- Lua allows few local names
  local ENDS = { complete = true, suspend = true, requeue = true }

  -- shape tells whether a delta is a plain one, and notes what it writes, takes, and to and from which ports.
  local function shape(d)
    if not d.plain or d.type or d.handed or not ENDS[d.outcome] then return false end
    if #d.takes > 1 or #d.closes > 1 or d.nset + d.nunset > CHUNK then return false end
    if not d.packs and (#d.parts ~= 1 or #d.parts[1].writes > 1) then return false end
    local w, t = d.to or d.parts[1] and d.parts[1].writes[1], d.takes[1]
    if w and (w.id ~= d.id or w.dir ~= 'o' or #w.items > CHUNK or d.closes[1] and d.closes[1] ~= w.port) then return false end
    if t and (t.id ~= d.id or t.dir ~= 'i') or d.guess and not (t and t.port == d.guess.port) then return false end
    d.out, d.write, d.take = w and w.port or d.closes[1], w, t
    return d.out ~= '*' and not (t and t.port == '*') -- which is no port, but what admits others
  end

  -- wire notes where what is written to the Out port of a delta comes to, by its descriptor: to one In port of the tree, or it
  -- stays there; else it returns false.
  local function wire(d, descriptor)
    local n, port = string.match(descriptor or '', '^%d+ (%d+)i%.([%w_]+)$')
    if n then
      d.target, d.side, d.port = n == '0' and tree(d.id) or tree(d.id) .. '.' .. n, 'i', port
      return d.target ~= d.id
    end
    d.target, d.side, d.port = d.id, 'o', d.out
    return tonumber(descriptor or '')
  end

  -- asleep tells whether the job of a delta, which is behind another one in the transaction, is as it was guessed, and
  -- gets all that it reads from that one and what lies there. It adds to absent which keys have not to be there.
  local function asleep(d, j, before, closed, absent)
    local g, taken = d.guess, d.take
    local sent = before.write and #before.write.items or 0
    if sent == 0 and not d.ended then return false end -- nothing wakes it
    if j.token or j.status ~= S.suspended or j.version ~= g.version or (j.last or '') ~= g.last then return false end
    if before.target ~= d.id or before.port ~= g.port then return false end
    if j.touched + (d.ended and 1 or 0) ~= g.touched + g.closed then return false end
    d.rate = entered(j, d.runs, g.limit)
    if not d.rate or g.closed == 1 and not closed and not d.ended then return false end
    local list = key(d.id) .. ':i:' .. g.port
    if g.seen == sent then
      d.stored, absent[#absent + 1] = 0, list
    else
      d.stored = call('LLEN', list)
    end
    return d.stored + sent == g.seen and taken.n == g.seen and (d.limit == 0 or g.seen < d.limit)
  end

  -- knows notes what is asked of a port next that keeps its messages: its limit, how many have left it so far, and how
  -- many edges lead to it.
  local function knows(d, limit, head, sources)
    wired[d.target .. d.side .. d.port] = { channels = {}, limit = limit, head = head or '0', sources = sources }
  end

  -- awaits tells whether the port keeps its messages that a delta writes to.
  local function awaits(d)
    if jobs[d.target] then
      local edges = wires(d.target, 'i', d.port)
      return edges and #edges == 0 and not edges.moving
    end
    local _, v = fetch(d.target, 'i.' .. d.port, 'h.i.' .. d.port, 'n.i.' .. d.port)
    local limit = tonumber(v[24] or '')
    if limit then knows(d, limit, v[25], v[26] or '0') end
    return limit
  end

  -- holds tells whether a delta holds and is plain, given the one before it.
  local function holds(d, before, last, absent)
    if jobs[d.id] then return false end -- an earlier transaction of the call has it, or an earlier delta
    local out, inp = d.out or '', d.take and d.take.port or ''
    local j, v = fetch(d.id, 'o.' .. out, 'h.o.' .. out, 'x.o.' .. out,
      'i.' .. inp, 'h.i.' .. inp, 'n.i.' .. inp, 'f.i.' .. inp, 'x.i.' .. inp)
    if j.status == '' or j.last == d.last or j.again or j.blocked > 0 or j.loop or j.placed then return false end
    if j.graph or j.key and not j.pgraph then return false end
    if d.out and (v[26] or not wire(d, v[24])) then return false end
    d.limit, d.written = tonumber(v[27] or ''), tonumber(v[25] or '0')
    if d.side == 'o' then knows(d, tonumber(v[24]), v[25]) end
    if d.take and not (d.limit and (v[28] or '0') == d.take.head) then return false end
    if before then
      local sources = before.closes[1] and tonumber(v[29] or '0')
      if sources then
        if sources < 1 or v[30] or v[31] then return false end
        d.sources, d.ended = sources - 1, sources == 1
      end
      if not asleep(d, j, before, v[31], absent) then return false end
    elseif d.guess or j.token ~= d.token or j.status ~= S.running then
      return false
    elseif d.take then
      if call('LLEN', key(d.id) .. ':i:' .. inp) < d.take.n then return false end
    end
    return not (last and d.side == 'i') or awaits(d)
  end

  -- changed returns the fields of the job of a delta that its run changes, besides its status.
  local function changed(d, j, after)
    local fields = { 'reason', '', 'last', d.last, 'token', '', 'step', str(j.step), 'tries', '0', 'version', str(j.version) }
    local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
    if d.guess then add('ran', MOMENT) end
    local rate = pace(d, j)
    if rate ~= j.rate then add('rate', rate) end
    j.rate = rate
    if d.started then add('started', '1') end
    if d.take then add('h.i.' .. d.take.port, str(tonumber(d.take.head) + d.take.n)) end
    if d.write and #d.write.items > 0 and d.side == 'i' then add('h.o.' .. d.out, str(d.written + #d.write.items)) end
    if after and d.closes[1] then add('x.o.' .. d.out, '1') end
    if d.sources then add('n.i.' .. d.take.port, str(d.sources)) end
    if d.ended then
      add('x.i.' .. d.take.port, '1')
      add('touched', str(j.touched))
    end
    return fields
  end

  -- enter writes the fields of the job of a delta, besides its status. Nothing that others may have damaged can break off a
  -- transaction before all its jobs have theirs: so it holds, no message is read twice, and no end of input is lost.
  local function enter(d, after)
    local j = load(d.id)
    j.last, j.step, j.tries, j.version, j.token = d.last, j.step + d.runs, 0, j.version + 1, false
    if d.ended then j.touched = j.touched + 1 end
    if d.sources then ended = ended + 1 end
    call('HSET', key(d.id), unpack(changed(d, j, after)))
    j.slept = d.guess ~= nil or nil -- it was never queued
  end

  -- pass sends what a run wrote, and logs the run. What the next one of the transaction reads is stored nowhere.
  local function pass(d, after)
    local w, items = d.write, d.write and d.write.items or NONE
    sent = (d.packs or d.parts[1].entry ~= '') and not (w and w.unlogged) and {} or nil
    if #items > 0 and after then
      spent = spent + #items + 8
      if sent then
        sent[1] = { id = d.target, dir = 'i', port = d.port, from = tonumber(after.take.head) + after.stored, n = #items }
      end
    elseif #items > 0 then
      writer = d.id
      deliver(d.target, d.side, d.port, items)
      writer = nil
    end
    if d.packs then
      local where = sent and sent[1]
      sent = nil
      return log_packs(d, where)
    end
    for _, text in ipairs(d.parts[1].log) do note(d.id, text) end
    log_run(d.id, d.parts[1].entry)
  end

  -- conclude gives the job its status, as conclude() in tx.lua does.
  local function conclude(d, j)
    local event, more = j.again and 'requeue' or d.outcome, NONE -- it was woken by what it wrote, or the end of that
    if j.blocked > 0 and event ~= 'complete' then
      more = { 'reason', call('HGET', key(d.id), 'jam') }
      if event == 'requeue' then
        j.again, event, more[3], more[4] = true, 'suspend', 'again', '1'
      end
    end
    place(j, EV[event][S.running], nil, unpack(more))
  end

  -- apply does the rest.
  local function apply(d, after)
    local j = load(d.id)
    if d.guess then j.status = S.running end
    if d.take and d.stored ~= 0 then
      call('LTRIM', key(d.id) .. ':i:' .. d.take.port, d.stored or d.take.n, -1)
      j.port = d.take.port
      drained(d.id, 'i', d.take.port, d.limit)
    end
    chunked('HSET', key(d.id) .. ':s', d.set, d.nset)
    chunked('HDEL', key(d.id) .. ':s', d.unset, d.nunset)
    pass(d, after)
    if d.closes[1] and not after then
      call('HSET', key(d.id), 'x.o.' .. d.out, '1')
      if d.side == 'i' then end_edges(d.id, 'o', d.out, { { { d.target, 'i', d.port } } }, 0) end
    end
    local to = d.out and wired[d.target .. d.side .. d.port]
    if to then to.head = nil end -- it may be another one soon
    conclude(d, j)
    if j.parent and not j.pgraph then wake(j.parent, d.id) end
    return j
  end

  -- plain.transact does what transact() does, or returns nil.
  function plain.transact(deltas)
    if FULL or watching() or news.sets or ended + #deltas > MANY then return nil end
    for _, d in ipairs(deltas) do
      if not shape(d) then return nil end -- before anything is read
    end
    local absent, last = {}, nil
    for i, d in ipairs(deltas) do
      if not holds(d, deltas[i - 1], i == #deltas, absent) then
        wired = {} -- head does not stay true
        return nil
      end
      if i > 1 then absent[#absent + 1], absent[#absent + 2] = key(d.id) .. ':lock', key(d.id) .. ':c' end -- children may wake it
    end
    if #absent > 0 and call('EXISTS', unpack(absent)) > 0 then
      wired = {}
      return nil
    end
    space, counted = -1, {}
    for i, d in ipairs(deltas) do enter(d, deltas[i + 1]) end
    for i, d in ipairs(deltas) do last = apply(d, deltas[i + 1]) end
    quiesce()
    recounted()
    return { #deltas, '', last.status == S.queued and 1 or 0, last.blocked, space }, last
  end
end
