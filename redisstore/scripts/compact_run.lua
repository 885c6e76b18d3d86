-- compact_run.lua: what is done to trees that are one record, as long as they are: see compact.lua.

do -- Lua allows few local names
  local index = compact.index
  local NONE = {}
  local RARELY = 20        -- trees of a definition that were spread out before it is asked whether most are
  local USED = str(2 ^ 43) -- ms for which a definition stays that is used: for good

  -- compact.lead is the job of a record that is to run first, as others are that load() returns, as far as those look who order
  -- ready jobs.
  function compact.lead(r)
    local d = r.def[r.lead]
    return {
      id = compact.id(r, r.lead), status = r.status, type = d.map.type, queue = d.map.queue, queued = r.queued,
      token = false, record = r, listed = r.status == S.queued, priority = d.priority,
    }
  end

  -- compact.queued returns it if a job is of a record that waits for its run.
  function compact.queued(id)
    local r = compact.of(tree(id))
    return r and r.status == S.queued and compact.lead(r) or nil
  end

  -- run is how the run of a record is, as it says it.
  local function run(r)
    if not r.lead then return S.suspended end
    local ran = r.ran and ' ' .. r.ran .. ' ' .. r.round or ''
    return r.status .. ' ' .. index(r.lead) .. ' ' .. r.queued .. ' ' .. r.holder .. ran
  end

  -- write writes a record anew, with how its run is and what it says of jobs alone.
  local function write(r, rest)
    local text = r.head .. '\30' .. r.shared .. '\30' .. run(r) .. rest
    r.rest = rest
    call('SET', P .. 'r:' .. r.root, text)
    if r.status == S.running then compact.keep(r, text) end
  end

  -- compact.why tells why trees of a definition are not to be records: somebody follows what changes (followed), most do not stay
  -- so (spread), or the definition is not there (define); or returns nil. One that
  -- counts only from later on, by a clock that was ahead, counts from now on.
  function compact.why(digest)
    if news.sets or watching() then return 'followed' end
    local v = call('HMGET', P .. 'd:' .. digest, '0', 'spread', 'made', 'since')
    if not v[1] then return 'define' end
    if tonumber(v[4] or '0') > NOW then call('HSET', P .. 'd:' .. digest, 'since', MOMENT) end -- of a clock that was ahead
    local spread = tonumber(v[2] or '0')
    return spread > RARELY and 2 * spread > tonumber(v[3] or '0') and 'spread' or nil
  end

  -- compact.create makes the record of a tree.
  function compact.create(root, token, digest, keep, shared, lead, rest)
    local k = P .. 'd:' .. digest
    if call('HINCRBY', k, 'users', 1) == 1 then call('PEXPIRE', k, USED) end
    call('HINCRBY', k, 'made', 1)
    local head = digest .. ' ' .. MOMENT .. ' ' .. token .. ' ' .. keep
    local r = { root = root, head = head, shared = shared, created = MOMENT, token = token, keep = keep, digest = digest, at = P }
    r.lead, r.def, r.status, r.queued, r.holder = tonumber(lead), compact.definition(digest), S.queued, MOMENT, ''
    write(r, rest)
    compact.trees[root], jobkeys[root] = r, nil -- that it was not there was known
    if not r.lead then return end
    local j = compact.lead(r)
    j.listed = false
    -- Of many of its type others are looked at before, see due_sweep.lua: it has its first look within twenty seconds, by lot.
    local some = math.min(call('ZCARD', line.set(j.queue, j.type)) / 10, 20) * (tonumber(string.sub(root, -3), 16) or 0) / 4096
    call('ZADD', P .. 'due', str(NOW + LOOK * math.max(1, some)), j.id)
    ready[#ready + 1] = j
  end

  -- row returns the jobs in a row behind the first of a record, as prefetch() in run.lua does. Those that are suspended from the
  -- beginning have nothing to read.
  local function row(r, most)
    local out, d = {}, r.def[r.lead]
    if not d.to then return NONE end
    while d.to and #out < most do
      d = r.def[d.to]
      if d.map.queue ~= r.def[r.lead].map.queue or d.map.status ~= S.suspended or #out >= r.def.jobs then break end
      out[#out + 1] = { compact.id(r, d.n), compact.text(r, d.n), '', '' }
    end
    return out
  end

  -- started tells whether the first run of a record, of which j is that job, has begun as b says: now, or by an earlier sending
  -- of the call. It may not if anything is not as most are.
  local function started(r, j, type, b)
    if r.status == S.running and r.holder == b.token then return true end
    if r.status ~= S.queued or FULL or news.sets or watching() then return false end
    if (b.limits[type] or b.limits['']) >= 0 or b.places ~= places.none and #places.limited(j, b.places) > 0 then return false end
    if not b.unlocked and call('EXISTS', stem(j.id) .. ':lock') == 1 then return false end
    line.remove(j.queue, j.type, j.id)
    r.status, r.holder, r.ran, r.round = S.running, b.token, MOMENT, b.round or ''
    write(r, r.rest)
    b.till = b.till or str(NOW + b.lease)
    if line.out then
      local leases = line.out.leases
      leases[#leases + 1], leases[#leases + 2] = b.till, j.id
    else
      call('ZADD', P .. 'due', b.till, j.id)
    end
    return true
  end

  -- compact.begin begins the first run of a record, and returns its job and what that sees, as begin() in run.lua does; or nil.
  function compact.begin(id, b)
    local r = compact.of(tree(id))
    if not r or not r.lead or id ~= compact.id(r, r.lead) then return nil end
    local j, k = compact.lead(r), stem(id)
    local type = b.types and b.types[j.type] and j.type or line.base(j.type)
    if not started(r, j, type, b) then return nil end
    local boxes, left, most = {}, 2 * b.bytes, b.batches[type] or b.most
    for _, port in ipairs(r.def[r.lead].inputs) do
      local list = k .. ':i:' .. port
      local items, all, size = batch(list, 0, most, math.min(b.bytes, left))
      left = math.max(left - size, 1)
      if #items > 0 then boxes[#boxes + 1] = line.box(items, port, '0', all and #items or call('LLEN', list)) end
    end
    local seen = compact.text(r, r.lead) .. '\31record\31' .. r.def.runs
    j.token, j.begun = b.token, true
    return j, line.seen(seen, NONE, NONE, boxes, b.row > 0 and row(r, b.row) or NONE)
  end

  -- compact.transaction reads a transaction that is to complete all jobs of a record: root, token, jobs, then of each its number,
  -- the fields that change, in turn with their values, a byte 29 for the time; the In port that it has read, or '', how many
  -- messages, and how many it saw; the Out port that it writes to or closes, or '', and '1' if that ends what it feeds; messages
  -- that stay in that Out port; state: keys with values, keys to be removed; entries of the log, without their times.
  function compact.transaction()
    local t = { record = arg(), token = arg() }
    for i = 1, num() do
      local n, changed, port, taken, seen, out, ends = num(), arg(), arg(), num(), num(), arg(), arg() == '1'
      local items, nset = list(), 2 * num()
      local set, nunset = cursor, tonumber(ARGV[cursor + nset + 1])
      cursor = cursor + nset + 1 + nunset
      t[i] = {
        n = n, changed = changed, port = port, taken = taken, seen = seen, out = out, ends = ends, items = items, nset = nset,
        set = set, nunset = nunset, unset = set + nset + 1, log = list(), list = false, state = false, at = false, to = false,
      }
    end
    return t
  end

  -- holds tells whether a record may have a transaction: no more than the first of its jobs has begun, and each other one reads
  -- what the one before it writes.
  local function holds(r, t)
    if r.status ~= S.running or r.holder ~= t.token or r.def.runs ~= #t or news.sets or watching() then return false end
    if t[1].n ~= r.lead then return false end
    local absent = {}
    for i, d in ipairs(t) do
      local def, before, k = r.def[d.n], t[i - 1], stem(compact.id(r, d.n))
      if not def then return false end
      d.list, d.state = k .. ':i:' .. d.port, k .. ':s'
      if before then
        if r.def[before.n].to ~= d.n or r.def[before.n].into[before.out] ~= d.port then return false end
        local limit = tonumber(def.map['i.' .. d.port] or '')
        if not limit or limit > 0 and d.seen >= limit then return false end
        if before.ends and def.map['n.i.' .. d.port] ~= '1' then return false end
        absent[#absent + 1], absent[#absent + 2] = k .. ':lock', d.list
      elseif d.port ~= '' and (not tonumber(def.map['i.' .. d.port] or '') or call('LLEN', d.list) < d.taken) then
        return false
      end
      if d.nset > 0 then absent[#absent + 1] = d.state end -- nothing that is written may break off
      if i == #t and d.out ~= '' then -- what the last one writes stays there, or in the graph's port
        local up = def.up[d.out]
        local at = up and r.def[0] or def
        local limit = tonumber(at.map['o.' .. (up or d.out)] or '')
        if not limit or limit > 0 and #d.items >= limit then return false end
        if up == 'errors' or up and d.ends and at.map['n.o.' .. up] ~= '1' then return false end
        d.at, d.to = compact.id(r, at.n), up or d.out
        absent[#absent + 1] = stem(d.at) .. ':o:' .. d.to
      elseif #d.items > 0 then
        return false
      end
    end
    return #absent == 0 or call('EXISTS', unpack(absent)) == 0
  end

  -- filled puts a value in the places of a text that byte 29 marks, or in the first of them.
  local function filled(text, value, once)
    local at = string.find(text, '\29', 1, true)
    if at == #text then return string.sub(text, 1, -2) .. value end
    while at do
      text = string.sub(text, 1, at - 1) .. value .. string.sub(text, at + 1)
      if once then break end
      at = string.find(text, '\29', 1, true)
    end
    return text
  end

  -- compact.flush does for the records whose trees are over by this call what is done for all of them together.
  function compact.flush()
    local done = compact.done
    if not done then return end
    compact.done = nil
    call('ZREM', KEYS[1], unpack(done.over))
    if #done.kept > 0 then
      call('ZADD', P .. 'retained', unpack(done.kept))
      retain.remind(done.first)
    end
  end

  -- compact.wakes returns what is left to do behind a call, also if keys are damaged.
  function compact.wakes()
    pcall(compact.flush)
    return wakes()
  end

  -- over notes that the tree of a record is, which is kept for a time (ms) if that is given.
  local function over(r, keep)
    local done = compact.done or { over = {}, kept = {}, first = math.huge }
    compact.done = done
    done.over[#done.over + 1] = compact.id(r, r.lead)
    if not keep then return end
    if done.keep ~= keep then done.keep, done.till = keep, str(NOW + keep) end
    done.kept[#done.kept + 1], done.kept[#done.kept + 2] = done.till, r.root
    done.first = math.min(done.first, NOW + keep)
  end

  -- compact.span is for how long (ms) a record is kept that is over, or nil; false if that depends on what this does not know.
  function compact.span(r)
    local own = r.keep ~= '-' and r.keep ~= 'release' and r.keep
    local ms
    if own then ms = tonumber(own) else ms = retain.default('ended') end
    if ms and ms < retain.first and r.def.jobs == 1 then return false end -- it may not have been given anything yet
    return ms
  end

  -- compact.commit makes a transaction true, and returns what made() in commit.lua does: if it says 'spread' it is to come as
  -- others do.
  function compact.commit(t)
    local r, otherwise = compact.of(t.record), { '0', 'spread', '0', '0', '-1' }
    if not r then return otherwise end
    local n = t[#t].n
    local map = r.def[n].map
    local last = { id = compact.id(r, n), type = map.type, queue = map.queue, status = S.completed, record = r, token = false,
      priority = r.def[n].priority }
    local result = { index(#t), '', '0', '0', #t[#t].items > 0 and str(PLENTY) or '-1' }
    if r.status == 'over' and r.holder == t.token then
      last.repeated = true
      return result, last, last
    end
    if FULL then error({ err = OOM }) end
    local keep = holds(r, t) and compact.span(r)
    if keep == false then return otherwise end
    local rest, entries, d = {}, {}, t[#t]
    local up = d.at and d.at ~= last.id and d.to
    if r.def.runs < r.def.jobs then
      local settled = '\31status\31' .. S.completed .. '\31ended\31' .. MOMENT .. '\31reason\31\31open\0310\31broken\0310'
      local closed = up and d.ends and '\31n.o.' .. up .. '\0310\31x.o.' .. up .. '\0311' or ''
      rest[1] = '\0300' .. compact.own(r, 0) .. closed .. settled
    end
    for _, d in ipairs(t) do
      rest[#rest + 1] = r.def[d.n].mark .. compact.own(r, d.n) .. '\31' .. filled(d.changed, MOMENT)
    end
    if up and #d.items > 0 then rest[#rest + 1] = '\31h.o.' .. d.out .. '\31' .. #d.items end
    r.status = 'over' -- all its jobs have completed
    write(r, table.concat(rest))
    over(r, keep)
    for _, d in ipairs(t) do
      if d.taken > 0 and d.n == r.lead then call('LTRIM', d.list, index(d.taken), '-1') end
      chunked('HSET', d.state, d.set, d.nset)
      chunked('HDEL', d.state, d.unset, d.nunset)
      if #d.items > 0 then call('RPUSH', stem(d.at) .. ':o:' .. d.to, unpack(d.items)) end
      for _, entry in ipairs(d.log) do
        if d.at then entry = filled(entry, string.sub(d.at, #r.root + 2) .. ' o ' .. d.to, true) end
        entries[#entries + 1] = MOMENT .. '\31' .. entry
      end
      spent = spent + 8 + #d.items
    end
    if #entries > 0 then call('RPUSH', P .. 'l:' .. r.root, unpack(entries)) end
    return result, last, last
  end

  -- compact.take takes messages out of an Out port of a record whose jobs have all completed, and returns what port_take does, or
  -- nil: it is to be done as in other trees.
  function compact.take(id, dir, port, head, n, token)
    local r, map = compact.of(tree(id)), compact.map(id)
    if not map or r.status ~= 'over' or news.sets or watching() then return nil end
    if dir ~= 'o' or port == 'errors' or not tonumber(map['o.' .. port] or '') then return nil end
    local keep, list = compact.span(r), stem(id) .. ':o:' .. port
    if keep == false then return nil end
    if repeated(token .. head) then return 'ok' end
    if (map['h.o.' .. port] or '0') ~= head or call('LLEN', list) < n then return 'moved' end
    remember(token .. head)
    call('LTRIM', list, n, -1)
    write(r, compact.with(r, compact.nth(id), 'h.o.' .. port, str(tonumber(head) + n)))
    if call('ZREM', P .. 'kept', r.root) == 1 and keep then retain.at(r.root, NOW + keep) end
    return 'ok'
  end

  -- compact.stepped returns token and IDs of the runs that the commit of a record began behind it, or '', or keeps these.
  function compact.stepped(j, began)
    local r = j.record
    if not began then return string.match(compact.own(r, 's'), ' (.*)$') or '' end
    local more = '\30s\31' .. r.lead .. ' ' .. began
    write(r, r.rest .. more)
  end
end
