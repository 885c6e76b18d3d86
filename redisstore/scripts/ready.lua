-- ready.lua: who may run next. The ready jobs of a queue lie in a set for each type, by priority and then so that each
-- tree has its turn; the types that have some lie in a set of the queue, each with the score of its first job. A job is in its
-- set from when it becomes ready until its run begins, unless it is locked, throttled or delayed: then `due` brings it back.

line.CLASS = 2 ^ 40 -- scores of one priority
-- From here on `round` of a job is no round but when it was due, in ms since 2020: it is a job that runs in the order
-- of time, see job.Node.
line.TIMES, line.EPOCH = 2 ^ 36, 1577836800000
-- line.round is what line.pop said of the run that a transaction ends or goes on with: nil if none popped it.
-- line.known, set by start(), has what this call knows of sets: the first scores of a set, and of a queue in a priority;
-- line.idle the queues in which its caller begins nothing behind what it has done.
function line.types(queue) return P .. 'ready:' .. queue end
function line.set(queue, type) return P .. 'ready:' .. queue .. '#' .. type end

-- line.first returns the first member of a set, of one priority if that is given, and its score: when memory is full,
-- of those that may run then.
function line.first(set, priority)
  local from, to = '-inf', FULL and '(0' or '+inf'
  if priority then from, to = str((1000 - priority) * line.CLASS), '(' .. str((1001 - priority) * line.CLASS) end
  local found = call('ZRANGEBYSCORE', set, from, to, 'WITHSCORES', 'LIMIT', 0, 1)
  return found[1], tonumber(found[2])
end

-- line.class returns where the scores begin of the priority that a score is of.
function line.class(score) return math.floor(score / line.CLASS) * line.CLASS end

-- line.ring has the bell of a queue rung for jobs of a type.
function line.ring(queue, type)
  local types = rings[queue] or {}
  rings[queue], types[type] = types, true
end

-- line.more does so for all types that have ready jobs there, and returns how many these are if they are to be counted.
function line.more(queue, counting)
  local n = 0
  for _, type in ipairs(call('ZRANGEBYSCORE', line.types(queue), '-inf', FULL and '(0' or '+inf')) do
    line.ring(queue, type)
    n = n + (counting and call('ZCARD', line.set(queue, type)) or 0)
  end
  return n
end

-- line.count counts the ready jobs of a tree, besides its root, and returns how many it has now. Of a record it is one at most.
function line.count(id, n)
  return (tree(id) == id or compact.raw(tree(id))) and 1 or call('HINCRBY', P .. 't:' .. tree(id), 'ready', n)
end

-- line.head notes which job is the first in a set, after others have left it.
function line.head(queue, type)
  line.known = {}
  local score = call('ZRANGE', line.set(queue, type), '0', '0', 'WITHSCORES')[2]
  if score then call('ZADD', line.types(queue), score, type) else call('ZREM', line.types(queue), type) end
end

-- line.remove takes a job out of a set. Those of line.out leave it together.
function line.remove(queue, type, id)
  if line.out and line.out.type == type and line.out.queue == queue then
    line.out.ids[#line.out.ids + 1] = id
    return true
  end
  if call('ZREM', line.set(queue, type), id) == 0 then return false end
  line.count(id, -1)
  line.head(queue, type)
  return true
end

-- line.timed notes when a job that runs in the order of time is due: `round` may be too narrow for that, and only says its turn.
function line.timed(j, at)
  if (j.round or 0) < line.TIMES then return end
  j.round = math.min(math.max(at - line.EPOCH, line.TIMES), line.CLASS - 1)
  call('HSET', key(j.id), 'round', str(j.round), 'due', str(at))
end

-- line.light tells whether a job has no Shutdown: those that run in the order of time have none.
function line.light(j) return (j.round or 0) >= line.TIMES end

-- line.leave takes a job out of its ready set; one that ends may be in that for all engines.
function line.leave(j)
  j.listed = false
  if not line.remove(j.queue, j.type, j.id) then line.remove(j.queue, '', j.id) end
end

-- line.enter puts a job into its ready set: as many rounds behind the first as its tree has ready jobs, but one less if the first
-- is of a later round than the one that the run was of which makes it ready: its tree has not had its turn in that one yet. One
-- that ends comes first while the memory is full, as only those may run then. With any it goes to where engines find it that
-- lack its type.
function line.enter(j, any)
  local type, class = any and '' or j.type, FULL and -line.CLASS or (1000 - j.priority) * line.CLASS
  local set = line.set(j.queue, type)
  if j.listed then
    local score = call('ZSCORE', set, j.id)
    if score and line.class(tonumber(score)) == class then return end
    line.leave(j)
  end
  j.listed = true
  local types, known = line.types(j.queue), line.known
  local level = types .. ' ' .. class
  if not known[level] then
    local head = call('ZRANGEBYSCORE', types, str(class), str(class + line.CLASS - 1), 'WITHSCORES', 'LIMIT', 0, 1)[2]
    known[level] = head and tonumber(head)
  end
  local score = (known[level] or class) + line.count(j.id, 1)
  if (j.round or 0) >= line.TIMES then
    score = class + j.round
  elseif known[level] and line.round and line.round < known[level] - class then score = score - 1 end
  local first = known[set] or tonumber(call('ZSCORE', types, type) or '')
  call('ZADD', set, str(score), j.id)
  if not first or score < first then call('ZADD', types, str(score), type) end
  known[set], known[level] = math.min(first or score, score), math.min(known[level] or score, score)
  if not first or class < line.class(first) or FULL then line.ring(j.queue, type) end
end

-- line.arrive puts those that this call has made ready, and whose runs neither it has begun nor its caller will begin, into
-- their sets.
function line.arrive()
  for n, j in ipairs(ready) do
    local elsewhere = j.begun or j.kept or j.waits
    if not elsewhere and line.runnable(j) and (not FULL or j.status == S.terminating) then line.enter(j) end
    ready[n] = nil
  end
end

-- line.base is the type of a job without what else an engine must have.
function line.base(type) return string.match(type, '^[^@]*') end

-- line.fits tells whether a caller may have jobs of a type. What it needs more stands behind an @: a version, then ! or ? and
-- the build of each engine that cannot decode it. Which of them the caller has is among its types; see job.Needs.
function line.fits(b, type)
  if b.types[type] then return true end
  local base, version, refused = string.match(type, '^([^@]+)@(%d*)(.*)$')
  if not base or not b.types[version == '' and base or base .. '@' .. version] then return false end
  for build in string.gmatch(refused, '[!?](%w+)') do
    if b.types['!' .. build] then return false end
  end
  return true
end

-- line.in_time returns types of which b may have jobs that run in the order of time, given all types with their scores in
-- turn: first those whose first jobs are next, of two that were due at one time the one with the lesser ID.
function line.in_time(queue, b, all)
  local heads, types, later = {}, {}, {}
  for n = 1, #all, 2 do
    local type = all[n]
    local fits = type == '' or line.fits(b, type)
    local next = fits and (not heads[1] or b.priority or tonumber(all[n + 1]) <= heads[1].score)
    local id, score
    if next then id, score = line.first(line.set(queue, type), b.priority) end
    if id then heads[#heads + 1] = { type = type, score = score, id = id } elseif fits then later[#later + 1] = type end
  end
  table.sort(heads, function(x, y) return x.score < y.score or x.score == y.score and x.id < y.id end)
  for n, head in ipairs(heads) do types[n] = head.type end
  for _, type in ipairs(later) do types[#types + 1] = type end
  return types
end

-- line.order returns the types of a queue that have ready jobs, the one whose first job is next at first. Of eight times it
-- is another one of the same priority, by lot: else a type of which very many trees have jobs would hold up all others.
function line.order(queue, b)
  local all = call('ZRANGE', line.types(queue), 0, -1, 'WITHSCORES')
  local types, alike, lot = {}, 0, string.byte(b.token, -1) * 31 + string.byte(b.token, -2)
  if all[2] and tonumber(all[2]) - line.class(tonumber(all[2])) >= line.TIMES then return line.in_time(queue, b, all) end
  for n = 1, #all, 2 do
    types[#types + 1] = all[n]
    if line.class(tonumber(all[n + 1])) == line.class(tonumber(all[2])) then alike = #types end
  end
  if alike > 1 and lot % 8 == 0 then table.insert(types, 1, table.remove(types, math.floor(lot / 8) % alike + 1)) end
  return types
end

-- line.lowest returns the lowest priority of the ready jobs of a queue of the types that b says, or nil.
function line.lowest(queue, b)
  local worst
  for _, type in ipairs(FULL and {} or call('ZRANGE', line.types(queue), 0, -1)) do
    if type == '' or line.fits(b, type) then
      local last = tonumber(call('ZRANGE', line.set(queue, type), -1, -1, 'WITHSCORES')[2] or '')
      if last and (not worst or last > worst) then worst = last end
    end
  end
  return worst and 1000 - line.class(worst) / line.CLASS
end

-- line.pop begins a run of the first ready job of a queue, of the types that b says, and returns it and what it sees. Jobs of a
-- lower priority than b.floor are left to whoever hears of them, behind those of other shards; b.lower says if there are any.
function line.pop(queue, b)
  local looks, below = 20, b.floor and (1001 - b.floor) * line.CLASS or math.huge -- at jobs that cannot begin
  if b.lowest then b.priority = line.lowest(queue, b) end
  for _, type in ipairs(line.order(queue, b)) do
    while (type == '' or line.fits(b, type)) and looks > 0 do
      local id, score = line.first(line.set(queue, type), b.priority)
      if id and score >= below then
        b.lower, id = true, nil
        line.head(queue, type) -- were it not as it is noted there, that would be told again and again
      end
      if not id then break end
      b.round, b.score = str(score - line.class(score)), type ~= '' and score or nil
      local j, snapshot = compact.begin(id, b)
      if snapshot then return j, snapshot end
      j = load(id)
      snapshot = line.runnable(j) and line.follow(b, j)
      if snapshot then return j, snapshot end
      line.remove(queue, type, id) -- begin has left it in `due`, if it is to run at all
      j.listed, looks = false, looks - 1
    end
  end
end

-- line.awaits tells whether a job is to come behind others that are ready in its tree: more than one job goes on writing to
-- the port that woke it, and it reads what all of them wrote in one run then.
function line.awaits(j)
  local sources = j.port and tonumber(call('HGET', key(j.id), 'n.i.' .. j.port) or '')
  return sources and sources > 1 and tonumber(call('HGET', P .. 't:' .. tree(j.id), 'ready') or '0') > 0
end

-- line.own begins a run of a job that a transaction made ready, of b.floor at least, unless one of a higher priority is ready in
-- the queue, and returns it and what it sees. It is left to the caller to go on with the transaction's first job, if b says so.
function line.own(answer, b, last, before, first)
  if #ready == before then return nil, nil, true end -- it made none ready
  local _, head = line.first(line.types(last.queue))
  local function may(j)
    return line.fits(b, j.type) and j.queue == last.queue and not j.token
      and (1000 - j.priority) * line.CLASS <= (head or math.huge) and j.priority >= (b.floor or 0)
  end
  b.round = line.round and str(line.round)
  for n = before + 1, #ready do
    local j = ready[n]
    if b.how == '1' and line.awaits(j) then return nil, nil, true end
    local snapshot = may(j) and line.follow(b, j)
    if snapshot then
      for m = before + 1, b.holds[j.type] and first ~= j and #ready or 0 do first.kept = first.kept or ready[m] == first end
      if first.kept then answer[1][6] = 1 end
      return j, snapshot, true
    end
  end
  return nil, nil, head
end

-- line.again returns a job whose run an earlier sending of the call began, and what it sees if it goes on.
function line.again(id, b)
  local j, snapshot = compact.begin(id, b)
  if snapshot then return j, snapshot end
  j = load(id)
  return j, j.token == b.token and line.follow(b, j)
end

-- line.go_on begins a run behind a transaction whose last job is given: of one that it made ready or, if b.how says so, of
-- the first in the queue.
function line.go_on(answer, b, last, before, first)
  if not first then return end
  local j, snapshot, more = nil, nil, true
  local stepped = (first.repeated or not last) -- which may have run again since
    and (first.record and compact.stepped(first) or call('HGET', key(first.id), 'stepped'))
  if stepped and string.sub(stepped, 1, #b.token + 1) == b.token .. ' ' then -- a repeat of this call
    j, snapshot = line.repeated(answer, b, string.sub(stepped, #b.token + 1))
    if last and j == last and j.status == S.running then answer[1][3] = 1 end -- as it was before it began
  elseif last then
    if not b.lowest then b.floor = last.priority end -- short urgent jobs would lead to long ones of a low priority
    if b.how ~= '2' and (b.how == '3' or not b.lowest) then j, snapshot, more = line.own(answer, b, last, before, first) end
    if more and not snapshot and b.how ~= '3' then
      line.arrive()
      j, snapshot = line.pop(last.queue, b)
      if b.lower and not snapshot then line.more(last.queue) end
    end
    local began = snapshot and b.token .. ' ' .. j.id
    if b.score and snapshot then began = line.several(answer, b, j, snapshot, began) end
    if began and last.record then
      compact.stepped(last, began)
    elseif began then
      call('HSET', key(first.id), 'stepped', began)
    end
  end
  if snapshot then answer[2], answer[3] = j.id, snapshot end
end

-- wakes returns what is left to do behind a call: queue, generation of its bell, types of jobs that are ready there, priority
-- of the first job of each, …; and what else of `due` is to be looked at now, with an empty generation.
local function wakes()
  if next(recheck) then quiesce() end
  line.arrive()
  local out = {}
  for queue, types in pairs(rings) do
    local names, priorities, n = {}, {}, #out
    for type in pairs(types) do -- but those whose jobs have begun meanwhile
      local score = tonumber(call('ZSCORE', line.types(queue), type) or '')
      if score then
        names[#names + 1] = type == '' and '*' or type
        priorities[#names] = str(1000 - line.class(score) / line.CLASS)
      end
    end
    if #names > 0 then
      out[n + 1], out[n + 2] = queue, call('HGET', P .. 'bells', queue) or '0'
      out[n + 3], out[n + 4] = table.concat(names, ' '), table.concat(priorities, ' ')
    end
  end
  for member in pairs(urgent) do
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = member, '', '', ''
  end
  return out
end
