-- compact.lua: trees that are one record. A small tree whose jobs do nothing unusual is created as one text, `r:<root>`, in place
-- of a hash for each job: what trees of its kind have in common is said once, by its definition `d:<digest>`. Its first run may
-- begin, and the transaction that completes all its jobs at once may be made, with the record: engines say then what it will
-- be, and nothing is worked out here. For all else, whoever asks for the key of a job's hash, by key() in base.lua, has the tree
-- spread out before: each job has its hash then, and keeps it. What belongs to a job besides its hash (lists of messages, state,
-- lock) has the same keys in both forms, which stem() says. docs/redis.md says what is in a record.

do -- Lua allows few local names
  local UNUSED = 3600 * LOOK -- ms for which a definition stays that no tree uses any more
  local MOST = 1000          -- definitions that are kept from one call to the next

  -- compact.index is str() for what is mostly small: a number given to a command costs the server a microsecond.
  local indexes = {}
  local function index(n)
    local text = indexes[n] or str(n)
    if n >= 0 and n < CHUNK then indexes[n] = text end
    return text
  end
  compact.index = index

  -- fields reads fields and values of a text: in turn, and by name.
  local function fields(text)
    local list, map = {}, {}
    for name, value in string.gmatch(text .. '\31', '([^\31]*)\31([^\31]*)\31') do
      list[#list + 1], list[#list + 2], map[name] = name, value, value
    end
    return list, map
  end

  -- described reads what a definition says of a job: `map`, its fields; `inputs`, `outputs`: ports that keep messages; `mark` is
  -- in front of what a record says of it alone, `priority` a number.
  local function described(n, text)
    local list, map = fields(text)
    local d = { text = text, map = map, inputs = {}, outputs = {} }
    d.mark, d.priority = '\30' .. str(n), tonumber(map.priority or '500')
    for i = 1, #list, 2 do
      local dir, port = string.match(list[i], '^([io])%.([%w_]+)$')
      if dir and not string.find(list[i + 1], ' ', 1, true) then
        local side = dir == 'i' and d.inputs or d.outputs
        side[#side + 1] = port
      end
    end
    return d
  end

  -- What definitions say, by their keys: it does not change, so that it may be kept from one call to the next.
  local known, kept = {}, 0

  -- compact.definition returns what a digest stands for, or nil: somebody has removed that.
  function compact.definition(digest)
    local k = P .. 'd:' .. digest
    local def = known[k]
    if def then return def end
    def = { jobs = 0 }
    local all = call('HGETALL', k)
    for i = 1, #all, 2 do
      local n = tonumber(all[i])
      if n then def[n], def.jobs = described(n, all[i + 1]), def.jobs + 1 end
    end
    if def.jobs == 0 then return nil end
    local texts = {}
    for n = 1, def.jobs do texts[n] = def[n - 1].text end
    def.all = table.concat(texts, '\30')
    if kept >= MOST then known, kept = {}, 0 end
    known[k], kept = def, kept + 1
    return def
  end

  -- compact.defined is that of the record with a text.
  function compact.defined(text)
    local at = string.find(text, ' ', 1, true)
    return at and compact.definition(string.sub(text, 1, at - 1))
  end

  -- compact.nth is the number of a job in its tree, or nil: no job has that ID.
  function compact.nth(id)
    local root = tree(id)
    return id == root and 0 or tonumber(string.match(id, '^%.([1-9]%d*)$', #root + 1) or '') -- the embedded server needs one
  end

  -- compact.id is the ID of a job of a record by its number.
  function compact.id(r, n) return n == 0 and r.root or r.root .. '.' .. index(n) end

  -- read reads the text of the record of a tree. One that somebody has damaged has no definition.
  local function read(root, text)
    local a = string.find(text, '\30', 1, true)
    local b = a and string.find(text, '\30', a + 1, true)
    if not b then return { root = root } end
    local c = string.find(text, '\30', b + 1, true) or #text + 1
    local head, run = string.sub(text, 1, a - 1), string.sub(text, b + 1, c - 1)
    local digest, created, token, keep = string.match(head, '^(%S+) (%S+) (%S+) (%S+)$')
    local status, lead, queued, holder, ran, round = string.match(run, '^(%S+) ?(%d*) ?(%d*) ?(%S*) ?(%d*) ?(%d*)$')
    return {
      root = root, head = head, shared = string.sub(text, a + 1, b - 1), rest = string.sub(text, c), created = created,
      token = token, keep = keep, digest = digest, status = status, lead = tonumber(lead), queued = queued, holder = holder,
      ran = ran, round = round, def = digest and status and compact.definition(digest),
    }
  end

  -- compact.raw returns what is stored of the record of a tree, or false.
  function compact.raw(root)
    local text = compact.texts[root]
    if text == nil then
      text = call('GET', P .. 'r:' .. root)
      compact.texts[root] = text
    end
    return text
  end

  -- compact.put stores the record of a tree.
  function compact.put(root, text)
    call('SET', P .. 'r:' .. root, text)
    compact.texts[root], compact.trees[root] = text, nil
  end

  -- compact.of returns the record of a tree, or false.
  function compact.of(root)
    local r = compact.trees[root]
    if r ~= nil then return r end
    local text = compact.raw(root)
    r = text and read(root, text)
    if r and not r.def then r, compact.lost = false, root end -- then the tree is as if it was gone
    compact.trees[root] = r
    return r
  end

  -- compact.fetch reads what is stored of the records of some trees at once.
  function compact.fetch(roots)
    local keys = {}
    for n, root in ipairs(roots) do keys[n] = P .. 'r:' .. root end
    for n, text in ipairs(#keys > 0 and call('MGET', unpack(keys)) or {}) do compact.texts[roots[n]] = text end
  end

  -- compact.meet does so for those of the trees of jobs that have not been read yet.
  function compact.meet(ids)
    local roots, seen = {}, {}
    for _, id in ipairs(ids) do
      local root = tree(id)
      if compact.texts[root] == nil and not seen[root] and not string.find(id, '^[@!]') then
        roots[#roots + 1], seen[root] = root, true
      end
    end
    compact.fetch(roots)
  end

  -- compact.own returns what a record says of a job alone, with a byte 31 in front; or an empty text.
  function compact.own(r, n)
    if r.rest == '' then return '' end
    local mark = (r.def[n] and r.def[n].mark or '\30' .. n) .. '\31'
    local from = string.find(r.rest, mark, 1, true)
    if not from then return '' end
    return string.sub(r.rest, from + #mark - 1, (string.find(r.rest, '\30', from + 1, true) or 0) - 1)
  end

  -- compact.with returns what a record says of jobs alone, if a field of one of them has another value.
  function compact.with(r, n, name, value)
    local own = compact.own(r, n)
    local list, out = fields(string.sub(own, 2)), { name, value }
    for i = 1, own == '' and 0 or #list, 2 do
      if list[i] ~= name then out[#out + 1], out[#out + 2] = list[i], list[i + 1] end
    end
    local part, new = '\30' .. n .. own, '\30' .. n .. '\31' .. table.concat(out, '\31')
    local from, to = string.find(r.rest, part, 1, true)
    if own == '' then return r.rest .. new end
    return string.sub(r.rest, 1, from - 1) .. new .. string.sub(r.rest, to + 1)
  end

  -- compact.text returns the fields of a job and their values, in turn, as one text. What it says twice is as it says last.
  function compact.text(r, n)
    local def = r.def[n]
    if not def then return '' end
    local shared = r.shared ~= '' and '\31' .. r.shared or ''
    local keep, run = n == 0 and r.keep ~= '-' and '\31retain\31' .. r.keep or '', ''
    if n == r.lead then
      local status = r.status ~= 'over' and '\31status\31' .. r.status or ''
      run = '\31queued\31' .. r.queued .. '\31again\0310' .. status
      if r.holder ~= '' then run = run .. '\31token\31' .. r.holder .. '\31ran\31' .. r.ran .. '\31round\31' .. r.round end
    end
    local parent = n > 0 and r.root or ''
    return def.text .. '\31created\31' .. r.created .. '\31parent\31' .. parent .. shared .. keep .. run .. compact.own(r, n)
  end

  -- compact.fields returns the fields of a job and their values, in turn.
  function compact.fields(r, n)
    local _, map = fields(compact.text(r, n))
    local out = {}
    for name, value in pairs(map) do out[#out + 1], out[#out + 2] = name, value end
    return out
  end

  -- compact.children returns names and IDs of the children of a job, in turn.
  function compact.children(r, n)
    local out = {}
    for i = 1, n == 0 and r.def.jobs - 1 or 0 do out[2 * i - 1], out[2 * i] = r.def[i].map.name, compact.id(r, i) end
    return out
  end

  -- compact.map returns the fields of a job by name, or nil: its tree is no record, or has no such job.
  function compact.map(id)
    local r, n = compact.of(tree(id)), compact.nth(id)
    if r and r.def[n] then return select(2, fields(compact.text(r, n))) end
  end

  -- compact.read returns fields and children of a job, as these two do, or nil: its tree is no record, or has no such job.
  function compact.read(id)
    local r, n = compact.of(tree(id)), compact.nth(id)
    if r and r.def[n] then return compact.fields(r, n), compact.children(r, n) end
  end

  -- compact.define keeps a definition, of each job what it says, for a while: it stays as long as trees use it.
  function compact.define(digest, texts)
    local k = P .. 'd:' .. digest
    if call('HEXISTS', k, '0') == 1 then return end
    local all = {}
    for n, text in ipairs(texts) do all[2 * n - 1], all[2 * n] = str(n - 1), text end
    all[#all + 1], all[#all + 2] = 'since', MOMENT
    call('HSET', k, unpack(all))
    call('PEXPIRE', k, UNUSED)
  end

  -- compact.leave takes away a record; early: of a tree that was not over.
  function compact.leave(r, early)
    compact.trees[r.root], compact.texts[r.root] = false, false
    call('DEL', P .. 'r:' .. r.root)
    local k = P .. 'd:' .. r.digest
    local since = call('HGET', k, 'since')
    if not since or tonumber(r.created) < tonumber(since) then return end -- it was lost, and does not count this one
    if early then call('HINCRBY', k, 'spread', 1) end
    if call('HINCRBY', k, 'users', -1) == 0 then call('PEXPIRE', k, UNUSED) end
  end

  -- compact.spread gives each job of a tree the hash that it has in other trees, in place of the record.
  function compact.spread(root)
    if compact.done then compact.flush() end
    local r, waiting = compact.trees[root], 0
    for n = 0, r.def.jobs - 1 do
      local id, map = compact.id(r, n), r.def[n].map
      call('HSET', P .. 'j:' .. id, unpack(compact.fields(r, n)))
      local below = compact.children(r, n)
      if #below > 0 then call('HSET', P .. 'j:' .. id .. ':c', unpack(below)) end
      if n > 0 and n == r.lead and call('ZSCORE', line.set(map.queue, map.type), id) then waiting = 1 end
    end
    local n, stepped = string.match(compact.own(r, 's'), '^\31(%d+) (.*)$')
    if n then call('HSET', P .. 'j:' .. compact.id(r, tonumber(n)), 'stepped', stepped) end
    if r.def.jobs > 1 then call('HSET', P .. 't:' .. root, 'seq', r.def.jobs - 1, 'jobs', r.def.jobs) end
    if (r.lead or 0) > 0 then call('HSET', P .. 't:' .. root, 'ready', waiting) end
    if r.token ~= '-' and tonumber(r.created) > NOW - 60 * LOOK then remember(r.token) end
    compact.leave(r, r.status ~= 'over')
  end
end
