-- kin.lua: what wakes jobs besides data: their children, and alarms. A job is told which children woke it: their names are
-- in its key `:w`, scored with a counter, until a run that does not fail was told of them.

do -- Lua allows few local names
  local function name_of(id) return call('HGET', key(id), 'name') or '' end

  -- woken_by keeps the name of a child that wakes a job, behind those that did so before, until a run that does not fail
  -- was told of it. The child is given by its ID, or one of another tree by its name.
  local function woken_by(j, from, name)
    if j.graph or j.status == '' or from and j.wakers and j.wakers[from] then return end
    name = name or name_of(from)
    if name == '' then return end -- it is not a child any more
    local k = key(j.id) .. ':w'
    local last = call('ZRANGE', k, -1, -1, 'WITHSCORES')[2]
    call('ZADD', k, str(tonumber(last or '0') + 1), name)
    if from then
      j.wakers = j.wakers or {}
      j.wakers[from] = true -- until begin tells of it
    end
  end

  -- wake queues a sleeping job; a running one is queued again when its run ends. from is
  -- the child on whose behalf, which may be of another tree: then it is given by its name where the order arrives. data: as
  -- something came to one of its In ports, or that has ended.
  function wake(id, from, name, data)
    if from and tree(from) ~= tree(id) then return mail(id, 'wake', id, name_of(from)) end
    local j = load(id)
    if from or name then woken_by(j, from, name) end
    if j.status == S.running then
      local why = (from or name) and 'kin' or data and 'data' or true
      if j.again and j.again ~= why then why = true end
      if j.again ~= why then
        j.again = why
        call('HSET', key(id), 'again', why == 'kin' and '3' or '1')
        if why == true then call('HSET', key(id), 'must', '1') end -- until a run ends
      end
    elseif EV.wake[j.status] and not j.graph then
      if j.blocked > 0 then return rest(j) end
      if id == guessed and j.status == S.suspended then
        j.woken = true -- for transact, which goes on with it
        return
      end
      place(j, EV.wake[j.status])
    end
  end
end

-- noticed forgets the children of which a run was told, and those that woke its job while it ran, if it has seen since what
-- they had done: they are no reason to run again. Those that it lets go are removed.
local function noticed(d)
  local k, j = key(d.id), load(d.id)
  retain.seen(d)
  call('ZREMRANGEBYSCORE', k .. ':w', '-inf', str(d.woken))
  for i = 1, #d.looked, 2 do
    if call('ZSCORE', k .. ':w', d.looked[i]) == d.looked[i + 1] then call('ZREM', k .. ':w', d.looked[i]) end
  end
  if call('EXISTS', k .. ':w') == 1 then
    j.again = j.again or 'kin'
  elseif j.again == 'kin' then
    j.again = false
    call('HSET', k, 'again', '0')
  end
  retain.released(d)
end

-- alarm asks for a run at a time (ms).
local function alarm(id, at)
  local k = key(id) .. ':t'
  call('ZADD', k, str(at), str(at))
  call('ZADD', P .. 'due', call('ZRANGE', k, 0, 0)[1], '@' .. id)
end

-- alarms tells whether a job may ask for so many more runs.
local function alarms(id, n) return n == 0 or call('ZCARD', key(id) .. ':t') + n <= TIMERS end

-- ring fires the alarms of a job that are over.
local function ring(j)
  local k = key(j.id) .. ':t'
  call('ZREMRANGEBYSCORE', k, '-inf', MOMENT)
  local next = call('ZRANGE', k, 0, 0)[1]
  if next then
    call('ZADD', P .. 'due', next, '@' .. j.id)
  else
    call('ZREM', P .. 'due', '@' .. j.id)
  end
  if j.status == S.scheduled then
    place(j, EV.run[j.status]) -- it waited for a later time
  else
    wake(j.id)
  end
end
