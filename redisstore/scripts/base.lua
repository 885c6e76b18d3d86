-- base.lua: what every script of the store shares. It is put in front of each of them,
-- behind the state machine's tables S (statuses), EV (event -> from -> to) and SETTLED.
--
-- A script begins with start(). KEYS[1] is always `weir:{<namespace>:<shard>}:due`. Every other key is derived
-- from it, shares its hash tag, and so lies in the same slot. ARGV is read in order by arg(). LIFE, which is put in
-- front of this text, names the life of the server, from its start to its end; empty if it has no functions.
-- A server whose memory is full refuses a script. One that may free some, or that changes little, is sent again: then FULL is
-- true, and it leaves what needs memory for later.
-- Rule of all scripts: check first, write last, and begin writing with a command that
-- a full Redis refuses, so that a refusal leaves nothing half done.

local LOOK = 1000   -- ms after which the sweeper looks at a wake that nobody took
local CHUNK = 1000  -- values given to one command
local PLENTY = 1e6  -- room of a port without a limit
local MOST = 16000   -- values that one transaction writes: job.MaxWrites
local PORT = 14      -- values that a port counts for that messages come to: job.PortWrites
local TIMERS = 1000  -- times at which one job has asked for runs: job.MaxTimers
local PIECE = 4000    -- values after which a script leaves the rest of long work to another one
local PIECE_BYTES = 2 ^ 19 -- and bytes of messages
local MANY = 180      -- jobs that a script wakes, looks at, or whose ports it closes, before it leaves others to the next one
local ORDER = 500     -- messages of one order to another shard, at most
local ORDER_BYTES = 2 ^ 16 -- and about how many bytes

-- What belongs to one call. On most servers the rest of this text runs once in the life of
-- the server: nothing else here may change.
local KEYS, ARGV, call, cursor, P, NOW, MOMENT -- which is NOW as a text
local FULL        -- whether the memory of the server is full, and the script goes on nevertheless
local jobs, ready -- those loaded, by ID; those made ready, in order
local jobkeys, trees -- of jobs, by ID
local wired       -- edges of ports, by job, direction and port: to be emptied when ports change
local recheck     -- graphs that may be quiescent now, by ID: see quiesce
local rings       -- queues whose bell is to be rung, with the types of which there are jobs, by queue
local line = {} -- what concerns those that wait for runs, see ready.lua
local serial = {} -- what concerns sequential keys, see serial.lua
local urgent      -- members of `due` that are no jobs and want to be looked at now
local compact = {} -- what concerns trees that are one record, see compact.lua; trees: those that were looked for, by root;
-- texts: what is stored of them
local news = {}   -- what concerns those who listen to statuses, and follow changes of jobs: see news.lua
local writer      -- the job whose commit this is
local counted     -- graphs whose counts a transaction has changed, by ID; nil: they are written at once
local guessed     -- the job whose run, on what this commit writes, comes next in the transaction
local quiet       -- what is appended wakes nobody
local sent        -- where messages went, for the log, when it is a table
local ended       -- edge ends that the call has closed
local spent       -- about how much the call has written so far, as a number of values
local space       -- how many messages may come next into the fullest port that a transaction wrote to; -1: it wrote to none

local WHOLE = string.format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f' -- which is slower: of 32 bits
local function str(n) return string.format(WHOLE, n) end

-- watching tells whether anybody listens to statuses. While its slot moves between servers of a cluster, this is what
-- refuses a script, before it writes anything: both servers refuse to look for several keys of which one (`none`) is
-- not there. Without it keys that are on the other server would be taken for absent.
local function watching()
  if news.watched == nil then
    local c = P .. 'changes:'
    local any = call('EXISTS', P .. 'watch', P .. 'watch:outside', c .. 'roots', c .. 'all', c .. 'trees', P .. 'none') > 0
    news.sets = any and news.kept()
    news.watched = any and call('EXISTS', P .. 'watch', P .. 'watch:outside') > 0
  end
  return news.watched
end

-- start begins a call, whose own arguments are those behind the first skip.
local function start(keys, args, skip, full)
  KEYS, ARGV, call, cursor = keys, args, redis.call, skip
  FULL = full
  P, news.watched, news.noted = string.sub(KEYS[1], 1, -4), nil, {}
  watching() -- first of all
  local clock = call('TIME')
  NOW = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
  MOMENT = str(NOW)
  jobs, ready, wired, urgent, jobkeys, trees, recheck, rings = {}, {}, {}, {}, {}, {}, {}, {}
  line.known, line.idle, line.round, line.families, line.out, line.soon = {}, {}, nil, nil, nil, nil
  compact.trees, compact.texts, compact.done, compact.told, retain.known = {}, {}, nil, nil, nil
  writer, counted, guessed, quiet, sent, space, spent, ended = nil, nil, nil, false, nil, -1, 0, 0
end

local function arg()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function num()
  cursor = cursor + 1
  return tonumber(ARGV[cursor])
end

-- list returns as many arguments as the next one says.
local function list()
  local n = num()
  local from = cursor
  cursor = cursor + n
  if n <= CHUNK then return { unpack(ARGV, from + 1, cursor) } end
  local out = {}
  for i = 1, n do out[i] = ARGV[from + i] end
  return out
end

local function tree(id)
  local t = trees[id]
  if not t then
    local dot = string.find(id, '.', 1, true)
    t = dot and string.sub(id, 1, dot - 1) or id
    trees[id] = t
  end
  return t
end

-- stem is what the keys begin with of what belongs to a job besides its hash.
local function stem(id) return P .. 'j:' .. id end

-- key is the key of a job's hash. A tree that is one record is spread out before.
local function key(id)
  local k = jobkeys[id]
  if not k then
    if compact.of(tree(id)) then compact.spread(tree(id)) end
    k = stem(id)
    jobkeys[id] = k
  end
  return k
end

-- line.runnable tells whether a job waits for a run to begin: it may be in a ready set.
function line.runnable(j) return j.status == S.queued or j.status == S.terminating and not j.token end

-- fetch reads the fixed fields of a job, and others, which are the second result, from the 24th on. again is 'kin' if only
-- children woke it during its run, and 'data' if what came to its In ports, or their ends, did, or more: see kin.lua. Whether its
-- tree is one record is looked for only if it has no hash.
local AGAIN = { ['1'] = 'data', ['2'] = true, ['3'] = 'kin' }
local function fetch(id, ...)
  local k = jobkeys[id] or compact.trees[tree(id)] == nil and stem(id) or key(id)
  local v = call('HMGET', k, 'status', 'type', 'queue', 'priority', 'token', 'last', 'again',
    'parent', 'pgraph', 'graph', 'open', 'broken', 'step', 'version', 'tries', 'silent', 'rate',
    'blocked', 'loop', 'policy', 'touched', 'round', 'key', ...)
  if v[1] then jobkeys[id] = k elseif not jobkeys[id] and compact.of(tree(id)) then return fetch(id, ...) end
  local j = {
    id = id, status = v[1] or '', type = v[2], queue = v[3], priority = v[4] and tonumber(v[4]) or 500,
    token = v[5] and v[5] ~= '' and v[5], last = v[6],
    again = AGAIN[v[7]], moved = v[7] == '2',
    parent = v[8] and v[8] ~= '' and v[8], pgraph = v[9] == '1', graph = v[10] == '1',
    open = v[11] and tonumber(v[11]) or 0, broken = v[12] and tonumber(v[12]) or 0,
    step = v[13] and tonumber(v[13]) or 0, version = v[14] and tonumber(v[14]) or 0, tries = v[15] and tonumber(v[15]) or 0,
    silent = v[16] or '', rate = v[17] or '', blocked = v[18] and tonumber(v[18]) or 0, loop = v[19],
    policy = v[20] or '', touched = v[21] and tonumber(v[21]) or 0, round = v[22] and tonumber(v[22]), key = v[23],
  }
  if j.token and string.byte(j.token, -1) == 43 then -- '+': the run holds places of limits
    j.token, j.placed = string.sub(j.token, 1, -2), true
  end
  j.listed = line.runnable(j)
  jobs[id] = j
  return j, v
end

-- load does so once a script, and returns the job.
local function load(id) return jobs[id] or fetch(id) end

-- touch notes that a job is changed other than by being woken or run: what anybody has known of
-- it does not hold any more.
local function touch(id)
  local touched = call('HINCRBY', key(id), 'touched', 1)
  if jobs[id] then jobs[id].touched = touched end
  news.moved(id)
end

-- flat returns the fields of a job and their values as one text, joined by \31, which is several
-- times cheaper to send and to read; or as they are, if that is in one of the two fields that
-- may hold anything.
local function flat(fields, reason, by)
  return string.find(reason .. by, '\31', 1, true) and fields or table.concat(fields, '\31')
end

-- OOM is what a full server answers.
local OOM = "OOM command not allowed when used memory > 'maxmemory'."

-- line.fault is the text of an error that was caught.
function line.fault(e) return type(e) == 'table' and e.err or tostring(e) end

-- probe is refused if the memory is full, and does nothing: for scripts that begin writing with what is not refused.
local function probe() call('SET', P .. 'none', '', 'XX') end

-- Calls from outside of runs carry a random token. The driver repeats a call whose reply
-- was lost, at once: for a minute the repeat is known by its token and changes nothing. A call
-- with a key that the caller chose is known by that for longer.
local function repeated(token) return call('ZSCORE', P .. 'seen', token) end

-- remember notes a token, and returns whether it is new.
local function remember(token, ms)
  local minute, k = 60000, P .. 'seen'
  local new = call('ZADD', k, 'NX', str(NOW + (ms or minute) - minute), token) == 1
  local old = call('ZRANGEBYSCORE', k, '-inf', str(NOW - minute), 'LIMIT', 0, 100) -- more than one a call: they end
  if #old > 0 then call('ZREM', k, unpack(old)) end
  if call('PTTL', k) < (ms or minute) then call('PEXPIRE', k, 2 * (ms or minute)) end -- and so not at each call
  return new
end

local review, wake, quiesce, mail

-- tell publishes the new status of a job on its channel, while anybody watches, and notes it for those who follow changes.
local function tell(j)
  news.note(j.id, not j.parent)
  if watching() and j.silent == '' then
    mail('hub', 'publish', '/weir/job/' .. j.id, '{"job":"' .. j.id .. '","status":"' .. j.status .. '"}')
  end
end

-- count writes the counts of a graph's children.
local function count(g) call('HSET', key(g.id), 'open', str(g.open), 'broken', str(g.broken)) end

-- line.enqueue writes that a job is ready, with fields and their values, and when the sweeper looks at it. While line.soon is
-- true that is left to the caller of place, who may begin a run of the job at once: j.unwritten.
function line.enqueue(j, at, ...)
  j.unwritten = false
  call('HSET', key(j.id), 'status', j.status, 'queued', MOMENT, 'again', '0', ...)
  call('ZADD', P .. 'due', str(at or NOW + LOOK), j.id)
end

-- place gives a job its new status, keeps `due` and `failures` in step, lists jobs that became ready
-- and tells a graph about its child. at (ms) overrides when the sweeper looks at it; what comes
-- behind are fields, and their values, that change with the status. A root that needs a key may have to wait for it.
local function place(j, to, at, ...)
  local from, ends = j.status, false
  if j.key and not j.pgraph then
    to, ends = serial.changed(j, to)
    if to == S.waiting then at = nil end
  end
  j.status = to
  spent = spent + 8
  local gone = j.listed and (at or not line.runnable(j))
  if at and not j.token and j.round then line.timed(j, at) end
  if line.runnable(j) then
    j.again, j.moved = false, false
    if line.soon and not at and (...) == nil then j.unwritten = true else line.enqueue(j, at, ...) end
    if not at then ready[#ready + 1] = j end
  else
    if retain.over(to) then
      call('HSET', key(j.id), 'status', to, 'ended', MOMENT, ...)
    else
      call('HSET', key(j.id), 'status', to, ...)
    end
    if at then
      call('ZADD', P .. 'due', str(at), j.id)
    elseif not j.token and from ~= S.suspended and not j.slept then -- who sleeps is not in due, but for its alarms
      call('ZREM', P .. 'due', j.id)
    end
  end
  if gone then line.leave(j) end
  if to == S.failed then
    call('ZADD', P .. 'failures', 0, j.id)
  elseif from == S.failed then
    call('ZREM', P .. 'failures', j.id)
  end
  if from ~= to then tell(j) end
  if not j.pgraph then
    if ends then serial.leave(j) end
    return retain.settled(j, from)
  end
  if from == '' then return end
  local ignored = j.policy == 'ignore' and S.failed
  local open = ((SETTLED[to] or to == ignored) and 0 or 1) - ((SETTLED[from] or from == ignored) and 0 or 1)
  local broken = (to == S.failed and 1 or 0) - (from == S.failed and 1 or 0)
  if ignored then broken = 0 end
  if open == 0 and broken == 0 then return end
  local g = load(j.parent)
  if g.status == '' then return end
  g.open, g.broken = g.open + open, g.broken + broken
  if counted then counted[g.id] = g else count(g) end
  if review(g, j) and counted then counted[g.id] = nil end
end

-- review settles a graph by the counts of its children. A graph has no runs: it goes
-- the same way through the state machine in one step. by is the child that changed. It returns whether it has written the counts.
function review(g, by)
  local want, last = S.suspended, 'suspend'
  if g.broken > 0 and (g.policy ~= 'ignore' or g.open == g.broken) then -- else it goes on with the rest
    want, last = S.failed, 'fail'
  elseif g.open == 0 then
    want, last = S.completed, 'complete'
  end
  local start = EV.wake[g.status] or EV.retry[g.status]
  if g.status == want or not start then return end
  local reason = ''
  if want == S.failed and by then
    local v = call('HMGET', key(by.id), 'name', 'reason')
    reason = (v[1] or '') .. ': ' .. (v[2] or '')
  end
  place(g, EV[last][EV.begin[start]], nil, 'reason', reason, 'open', str(g.open), 'broken', str(g.broken))
  if g.parent and not g.pgraph then wake(g.parent, g.id) end
  return true
end

-- rest lets a job that is to run sleep until the ports that it filled have room.
local function rest(j)
  j.again = true
  call('HSET', key(j.id), 'again', '1', 'reason', call('HGET', key(j.id), 'jam'))
  if j.status ~= S.suspended then place(j, EV.suspend[EV.begin[EV.wake[j.status]]]) end
end
