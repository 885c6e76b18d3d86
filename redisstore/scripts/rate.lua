-- rate.lua: how often jobs run: limits of runs a minute, and the guard against hot loops.

-- What a job without a limit of runs has counted begins so: runs in a row that made no progress.
local IDLE = 'idle '

-- rated counts runs of a job, all of them or, with IDLE, those that made no progress: the minute, and
-- the runs in it, or false if those were more than limit.
local function rated(j, runs, limit, idle)
  idle = idle or ''
  local minute = math.floor(NOW / 60000)
  local m, n = string.match(j.rate, '^' .. idle .. '(%d+):(%d+)$')
  if tonumber(m) == minute then runs = tonumber(n) + runs end
  return runs <= limit and idle .. str(minute) .. ':' .. str(runs)
end

-- entered is what a job has counted when runs of it begin, or false if they may not: a limit below zero is for
-- runs without progress, which are counted when they end.
local function entered(j, runs, limit)
  if limit >= 0 then return rated(j, runs, limit) end
  return rated(j, 1, -limit, IDLE) and j.rate
end

-- throttle lets a job that has run too often wait until the minute is over.
local function throttle(j, limit)
  local k, kind, reason = key(j.id), 'rate', 'rate: it ran ' .. str(math.abs(limit)) .. ' times this minute'
  if limit < 0 then kind, reason = 'idle', reason .. ' in a row, and read, wrote and spawned nothing' end
  if call('HGET', k, 'reason') ~= reason then note(j.id, '{"throttled":"' .. reason .. '"}') end
  call('HSET', k, 'reason', reason)
  call('ZADD', P .. 'due', str((math.floor(NOW / 60000) + 1) * 60000), j.id)
  return { kind, str(math.abs(limit)), line.base(j.type) }
end

-- pace returns what a job has counted of its runs after those of a delta.
local function pace(d, j)
  if d.idle and not j.again then return rated(j, 1, math.huge, IDLE) end
  if string.sub(j.rate, 1, #IDLE) == IDLE then return d.outcome == 'checkpoint' and j.rate or '' end
  if d.rate then return d.rate end
  local more = d.runs - (d.leads and 0 or 1) -- the first of them was counted when it began
  return more > 0 and j.rate ~= '' and rated(j, more, math.huge) or j.rate
end
