-- several.lua: beginning runs of several ready jobs in one call: of those that stand behind the first in its ready set, if the
-- caller says that runs of their type are short.

do -- Lua allows few local names
  local LARGEST = 2 ^ 16 -- about how many bytes all that they see may have
  -- fresh tells whether a job has never run: others get fewer messages, and cannot be chained, if they begin too early; and
  -- those whose run died may have killed its process, with the others that had begun there.
  local function fresh(j)
    return (j.version or 0) == 0 and (j.record or call('HEXISTS', key(j.id), 'deaths') == 0)
  end

  -- enough tells whether no more than one run is to begin behind that of a job: limits of runs at once and rates are to be
  -- shared with others, and who runs in the order of time does so one by one.
  local function enough(b, j)
    if FULL or b.lowest or not fresh(j) or (j.round or 0) >= line.TIMES then return true end
    return b.places ~= places.none and #places.limited(j, b.places) > 0
  end

  -- behind returns the jobs behind the first in its set, of its priority, and their scores; or none, and the one that all have:
  -- scores take a server long.
  local function behind(set, score, n)
    local class = line.class(score)
    local from, to = str(class), '(' .. str(class + line.TIMES)
    local ids = call('ZRANGEBYSCORE', set, from, to, 'LIMIT', '0', str(n))
    if #ids == 0 then return ids end
    local first, last = call('ZSCORE', set, ids[1]), call('ZSCORE', set, ids[#ids])
    if first == last then return ids, {}, tonumber(first) end
    local all, scores = call('ZRANGEBYSCORE', set, from, to, 'WITHSCORES', 'LIMIT', '0', str(n)), {}
    for i = 1, #ids do scores[i] = tonumber(all[2 * i]) end
    return ids, scores
  end

  -- size is about how many bytes a run sees.
  local function size(j, snapshot)
    if j.bytes then return j.bytes end
    local n, state, boxes, row = #snapshot[3], snapshot[4] or '', snapshot[6] or '', snapshot[7] or '' -- '': there are none
    for i = 1, #state do n = n + #state[i] end
    for i = 1, #boxes do
      for k = 1, #boxes[i] - 3 do n = n + #boxes[i][k] end
    end
    for i = 1, #row do n = n + #row[i][2] end
    return n
  end

  -- one begins a run of a job, and returns it and what that sees, or nil.
  local function one(id, type, b)
    local j, snapshot = compact.begin(id, b)
    if snapshot then return j, snapshot end
    j = load(id)
    return j, j.type == type and fresh(j) and line.runnable(j) and line.follow(b, j) or nil
  end

  -- free reads the records of jobs, and tells whether there are some and none of them is locked.
  local function free(ids)
    local roots, locks = {}, {}
    for n, id in ipairs(ids) do roots[n] = tree(id) end
    compact.fetch(roots)
    for _, id in ipairs(ids) do
      if compact.raw(tree(id)) then locks[#locks + 1] = P .. 'j:' .. id .. ':lock' end
    end
    return #locks > 0 and call('EXISTS', unpack(locks)) == 0
  end

  -- line.token is that of the nth run of those that begin in one call: A to Z and then a, … behind the call's.
  function line.token(token, n) return n == 1 and token or token .. string.char((n > 27 and 69 or 63) + n) end

  -- line.several begins runs of jobs that stand behind one in its set, whose run line.pop has begun, and adds to began their
  -- IDs, a blank before each. The answer gets tokens, IDs and what the runs see, in turn. A job whose keys are damaged does no
  -- harm to the others.
  function line.several(answer, b, j, snapshot, began)
    local out, token, bytes = {}, b.token, size(j, snapshot)
    local most = enough(b, j) and 1 or b.most_of[j.type] or 1
    if most < 2 or bytes > LARGEST then return began end
    local ids, found, scores, score = { began }, behind(line.set(j.queue, j.type), b.score, most - 1)
    local class, level, round = line.class(b.score), nil, nil
    line.out = { queue = j.queue, type = j.type, set = line.set(j.queue, j.type), ids = {}, leases = {} }
    b.unlocked = free(found)
    for n, id in ipairs(found) do
      if (scores[n] or score) ~= level then level = scores[n] or score; round = str(level - class) end
      b.token, b.round = line.token(token, n + 1), round
      local fine, x, seen = pcall(one, id, j.type, b)
      if not fine or not seen then break end
      out[#out + 1], out[#out + 2], out[#out + 3] = b.token, x.id, seen
      ids[#ids + 1], bytes = x.id, bytes + size(x, seen)
      if bytes > LARGEST then break end
    end
    b.token, b.unlocked = token, nil
    line.left()
    if #out > 0 then answer[4], answer[5] = '', out end
    return table.concat(ids, ' ')
  end

  -- line.repeated returns what an earlier sending of a call began, whose IDs are given, with a blank before each: the first, and
  -- what it sees; and notes the others, if they go on.
  function line.repeated(answer, b, ids)
    local token, n, others, j, snapshot = b.token, 0, {}, nil, nil
    for id in string.gmatch(ids, ' (%S+)') do
      n = n + 1
      b.token = line.token(token, n)
      local x, seen = line.again(id, b)
      if n == 1 then
        j, snapshot = x, seen
      elseif seen then
        others[#others + 1], others[#others + 2], others[#others + 3] = b.token, id, seen
      end
    end
    b.token = token
    if #others > 0 then answer[4], answer[5] = '', others end
    return j, snapshot
  end

  -- line.left takes those out of their set whose runs have begun, at once.
  function line.left()
    local out, ids, trees = line.out, line.out.ids, {}
    line.out = nil
    if #ids == 0 then return end
    if #out.leases > 0 then call('ZADD', P .. 'due', unpack(out.leases)) end
    call('ZREM', out.set, unpack(ids))
    for _, id in ipairs(ids) do
      if tree(id) ~= id and not compact.raw(tree(id)) then trees[tree(id)] = (trees[tree(id)] or 0) + 1 end
    end
    for root, n in pairs(trees) do call('HINCRBY', P .. 't:' .. root, 'ready', str(-n)) end
    line.head(out.queue, out.type)
  end
end
