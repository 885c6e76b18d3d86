-- compact_end.lua: transactions that complete all jobs of a tree that is one record.

do -- Lua allows few local names
  local index = compact.index
  local RUNNING, OVER = '\30' .. S.running .. ' ', '\30over ' -- how what a record says of a run begins
  local shapes, count = {}, 0 -- see shaped()
  local MANY = 200            -- of these are kept from one call to the next

  -- compact.ahead returns how many transactions a call has, and reads at once what those have to know that are to complete all
  -- jobs of a record: the roots of these, and the keys that must not be there.
  function compact.ahead()
    local n, roots, keys = num(), list(), num()
    compact.absent, cursor = cursor, cursor + keys
    if #roots > 0 then compact.fetch(roots) end
    compact.clear = keys == 0 or call('EXISTS', unpack(ARGV, compact.absent + 1, cursor)) == 0
    return n
  end

  -- shaped reads the shape of a transaction: queue and priority of the last job; how long the tree is kept, '-' if it does not
  -- say; numbers of the job that has run first, and of the last one; how many jobs have run, and '1' if there is one only; how
  -- many parts there are of what the record is to say, messages to take and to write, entries of the log, and keys that must not
  -- be there; then of each job whose state changes how many keys get values, and how many go. It is kept with where in the
  -- transaction, whose arguments begin with 'record', all that begins.
  local function shaped(text)
    local v = {}
    for word in string.gmatch(text .. '\31', '([^\31]*)\31') do v[#v + 1] = word end
    local s = {
      queue = v[1], priority = tonumber(v[2]), keep = v[3], lead = v[4], last = v[5], jobs = tonumber(v[6]), lone = v[7] == '1',
      nparts = tonumber(v[8]), taken = tonumber(v[9]), nitems = tonumber(v[10]), nentries = tonumber(v[11]),
      keys = tonumber(v[12]), states = {},
    }
    s.from = 4 + s.nparts
    s.to = s.from + (s.taken > 0 and 1 or 0)
    s.entries = s.to + (s.nitems > 0 and 1 or 0) + s.nitems
    s.size = s.entries + s.nentries
    for i = 13, #v, 2 do
      local d = { key = s.size, nset = 2 * tonumber(v[i]), nunset = tonumber(v[i + 1]) }
      s.states[#s.states + 1], s.size = d, s.size + 1 + d.nset + d.nunset
    end
    s.result = v[6] .. '\31\0310\0310\31' .. (s.nitems > 0 and str(PLENTY) or '-1')
    if count == MANY then shapes, count = {}, 0 end
    shapes[text], count = s, count + 1
    return s
  end

  -- compact.transaction reads a transaction that is to complete all jobs of a record, behind 'record': its shape, root, what the
  -- record says of the run, and what it is to say, in parts that the time is between; the list of what it takes; the list of what
  -- it writes, and that; entries of the log, without their times; of each job whose state changes the key of that, keys with
  -- values, and keys to be removed.
  function compact.transaction()
    local t = { at = cursor, record = ARGV[cursor + 2], absent = compact.absent }
    t.shape = shapes[ARGV[cursor + 1]] or shaped(ARGV[cursor + 1])
    compact.absent, cursor = compact.absent + t.shape.keys, cursor + t.shape.size - 1
    return t
  end

  -- compact.flush does for the records whose trees are over by this call what is done for all of them together.
  function compact.flush()
    local done = compact.done
    if not done then return end
    compact.done = nil
    call('ZREM', KEYS[1], unpack(done.over))
    if #done.read > 0 then call('DEL', unpack(done.read)) end
    if #done.kept > 0 then
      call('ZADD', P .. 'retained', unpack(done.kept))
      retain.remind(done.first)
    end
  end

  -- compact.wakes returns what is left to do behind a call, also if keys are damaged.
  function compact.wakes()
    pcall(compact.flush)
    for queue in pairs(line.idle) do pcall(line.more, queue) end
    return wakes()
  end

  -- over notes that the tree of a record is, which is kept for a time (ms) if that is given.
  local function over(t, keep)
    local done = compact.done or { over = {}, read = {}, kept = {}, first = math.huge }
    compact.done = done
    done.over[#done.over + 1] = t.shape.lead == '0' and t.record or t.record .. '.' .. t.shape.lead
    if t.whole then done.read[#done.read + 1] = t.whole end
    if not keep then return end
    if done.keep ~= keep then done.keep, done.till = keep, str(NOW + keep) end
    done.kept[#done.kept + 1], done.kept[#done.kept + 2] = done.till, t.record
    done.first = math.min(done.first, NOW + keep)
  end

  -- logged writes what a transaction logs.
  local function logged(t, n)
    if n == 0 then return end
    local k, from = P .. 'l:' .. t.record, t.at + t.shape.entries
    if n == 1 then return call('RPUSH', k, MOMENT .. '\31' .. ARGV[from]) end
    local all = {}
    for i = 1, n do all[i] = MOMENT .. '\31' .. ARGV[from + i - 1] end
    call('RPUSH', k, unpack(all))
  end

  -- completed makes a transaction true that holds.
  local function completed(t, keep)
    local s, first = t.shape, t.at + 4
    if s.nparts == 2 then
      t.text = ARGV[first] .. MOMENT .. ARGV[first + 1]
    else
      t.text = table.concat({ unpack(ARGV, first, first + s.nparts - 1) }, MOMENT)
    end
    compact.put(t.record, t.text)
    over(t, keep)
    if s.taken > 0 and not t.whole then call('LTRIM', ARGV[t.at + s.from], index(s.taken), '-1') end
    for _, d in ipairs(s.states) do
      local at = t.at + d.key
      chunked('HSET', ARGV[at], at, d.nset)
      if d.nunset > 0 then chunked('HDEL', ARGV[at], at + d.nset, d.nunset) end
    end
    if s.nitems > 0 then call('RPUSH', unpack(ARGV, t.at + s.to, t.at + s.to + s.nitems)) end
    logged(t, s.nentries)
    spent = spent + 8 * s.jobs + s.nitems
  end

  -- there tells whether what a transaction takes is there, and the definition of its record.
  local function there(t, text)
    if not compact.defined(text) then return false end
    if t.shape.taken == 0 then return true end
    local list = ARGV[t.at + t.shape.from]
    local len = call('LLEN', list)
    t.whole = len == t.shape.taken and list
    return len >= t.shape.taken
  end

  -- compact.commit makes a transaction true, and returns what made() in commit.lua does: if it says 'spread' it is to come as
  -- others do. What the record is to say was worked out by whoever sends it: nobody else has changed it if the run is still his.
  function compact.commit(t)
    local s, text, run = t.shape, compact.raw(t.record), ARGV[t.at + 3]
    local last = { queue = s.queue, priority = s.priority, status = S.completed, token = false, record = t }
    if text and not string.find(text, run, 1, true) then
      last.repeated, t.text = string.find(text, OVER .. string.sub(run, #RUNNING + 1), 1, true) and true, text
      if last.repeated then return s.result, last, last end
      text = false
    end
    if text and FULL then error({ err = OOM }) end
    local free = compact.clear or s.keys == 0 or call('EXISTS', unpack(ARGV, t.absent + 1, t.absent + s.keys)) == 0
    local keep = text and free and not news.sets and not watching() and there(t, text) and compact.span(s.keep, s.lone)
    if keep == false then return '0\31spread\0310\0310\31-1' end
    completed(t, keep)
    return s.result, last, last
  end

  -- compact.stepped returns token and IDs of the runs that the commit of a record began behind it, or '', or keeps these.
  function compact.stepped(j, began)
    local t = j.record
    if began then return compact.put(t.record, t.text .. '\30s\31' .. t.shape.lead .. ' ' .. began) end
    local at = string.find(t.text, '\30s\31', 1, true)
    return at and string.match(t.text, ' (.*)$', at) or ''
  end
end
