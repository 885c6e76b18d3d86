-- compact_run.lua: what is done to trees that are one record, as long as they are: see compact.lua.

do -- Lua allows few local names
  local index = compact.index
  local QUEUED, RUNNING = '\30' .. S.queued .. ' ', '\30' .. S.running .. ' ' -- how what a record says of a run begins
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

  -- write writes a record anew, with what it says of jobs alone.
  local function write(r, rest)
    r.rest = rest
    compact.put(r.root, r.head .. '\30' .. r.shared .. '\30' .. run(r) .. rest)
    compact.trees[r.root] = r
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
    local r = { root = root, head = head, shared = shared, created = MOMENT, token = token, keep = keep, digest = digest }
    r.lead, r.def, r.status, r.queued, r.holder = tonumber(lead), compact.definition(digest), S.queued, MOMENT, ''
    write(r, rest)
    jobkeys[root] = nil -- that it was not there was known
    if not r.lead then return end
    local j = compact.lead(r)
    j.listed = false
    -- Of many of its type others are looked at before, see due_sweep.lua: it has its first look within twenty seconds, by lot.
    local some = math.min(call('ZCARD', line.set(j.queue, j.type)) / 10, 20) * (tonumber(string.sub(root, -3), 16) or 0) / 4096
    call('ZADD', P .. 'due', str(NOW + LOOK * math.max(1, some)), j.id)
    ready[#ready + 1] = j
  end

  -- may tells whether the first run of a record may begin, of which j is that job: it may not if anything is not as most are.
  local function may(j, type, b)
    if FULL or news.sets or watching() then return false end
    if (b.limits[type] or b.limits['']) >= 0 or b.places ~= places.none and #places.limited(j, b.places) > 0 then return false end
    return b.unlocked or call('EXISTS', stem(j.id) .. ':lock') == 0
  end

  -- inboxes adds to what the first run of a record sees what it finds in its In ports: of each its name, how many messages are
  -- there, how many come, and these; and notes about how many bytes all that has.
  local function inboxes(seen, j, d, most, bytes)
    local left, n = 2 * bytes, #seen
    j.bytes = #seen[2]
    for _, port in ipairs(d.inputs) do
      local list = P .. 'j:' .. j.id .. ':i:' .. port
      local items, all, size = batch(list, 0, most, math.min(bytes, left))
      left, j.bytes = math.max(left - size, 1), j.bytes + size
      if #items > 0 then
        seen[n + 1], seen[n + 2], seen[n + 3] = port, all and #items or call('LLEN', list), #items
        for i, item in ipairs(items) do seen[n + 3 + i] = item end
        n = n + 3 + #items
      end
    end
    return seen
  end

  -- lease notes until when the run of a job has to say a word.
  local function lease(j, b)
    b.till = b.till or str(NOW + b.lease)
    if not line.out then return call('ZADD', P .. 'due', b.till, j.id) end
    local leases = line.out.leases
    leases[#leases + 1], leases[#leases + 2] = b.till, j.id
  end

  -- compact.begin begins the first run of a record, and returns its job and what that sees: {'record', what the record says from
  -- now on, its definition, or '' if the reply has that already, then what inboxes() says}; or nil. A repeat under the same token
  -- answers again.
  function compact.begin(id, b)
    local text = compact.raw(tree(id))
    local at = text and string.find(text, QUEUED, 1, true)
    local from = at or text and string.find(text, RUNNING, 1, true)
    if not from then return nil end
    from = from + (at and #QUEUED or #RUNNING)
    local blank = string.find(text, ' ', from, true)
    local n = string.sub(text, from, blank - 1)
    if id ~= (n == '0' and tree(id) or tree(id) .. '.' .. n) then return nil end
    local queued = string.find(text, ' ', blank + 1, true) -- where that ends
    local def = compact.defined(text)
    local d = def and def[tonumber(n)]
    if not d then return nil end
    local j = { id = id, type = d.map.type, queue = d.map.queue, priority = d.priority, status = S.running, token = b.token }
    j.record, j.begun = true, true
    local type = b.types and b.types[j.type] and j.type or line.base(j.type)
    if at then
      if not may(j, type, b) then return nil end
      line.remove(j.queue, j.type, id)
      text = string.sub(text, 1, at) .. S.running .. ' ' .. string.sub(text, from, queued) .. b.token .. ' ' .. MOMENT .. ' '
        .. (b.round or '') .. string.sub(text, queued + 1)
      compact.put(tree(id), text)
      lease(j, b)
    elseif string.sub(text, queued + 1, queued + #b.token + 1) ~= b.token .. ' ' then
      return nil
    end
    local seen = inboxes({ 'record', text, compact.told ~= def and def.all or '' }, j, d, b.batches[type] or b.most, b.bytes)
    compact.told = def
    return j, seen
  end

  -- compact.span is for how long (ms) a tree is kept that was a record and is over, if the record says so ('-': it does not), or
  -- nil; false if that depends on what is not known here. lone: it has one job only.
  function compact.span(own, lone)
    local ms
    if own ~= '-' and own ~= 'release' then ms = tonumber(own) else ms = retain.default('ended') end
    if ms and ms < retain.first and lone then return false end -- it may not have been given anything yet
    return ms
  end

  -- compact.take takes messages out of an Out port of a record whose jobs have all completed, and returns what port_take does, or
  -- nil: it is to be done as in other trees.
  function compact.take(id, dir, port, head, n, token)
    local r, map = compact.of(tree(id)), compact.map(id)
    if not map or r.status ~= 'over' or news.sets or watching() then return nil end
    if dir ~= 'o' or port == 'errors' or not tonumber(map['o.' .. port] or '') then return nil end
    local keep, list = compact.span(r.keep, r.def.jobs == 1), stem(id) .. ':o:' .. port
    if keep == false then return nil end
    if repeated(token .. head) then return 'ok' end
    if (map['h.o.' .. port] or '0') ~= head or call('LLEN', list) < n then return 'moved' end
    remember(token .. head)
    call('LTRIM', list, n, -1)
    write(r, compact.with(r, compact.nth(id), 'h.o.' .. port, str(tonumber(head) + n)))
    if call('ZREM', P .. 'kept', r.root) == 1 and keep then retain.at(r.root, NOW + keep) end
    return 'ok'
  end
end
