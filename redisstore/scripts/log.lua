-- log.lua: the logs of trees. A log is a list, `l:<tree>`, that keeps some 10,000 entries, and none that are older than the field
-- `log` of the namespace's retention says.

local note, by_hand, moved, log_run, log_pack
do -- Lua allows few local names
  local ENTRIES, PACKS, SLACK = 10000, 5000, 100 -- entries that a log keeps, and how many more before it is cut
  local EACH, OLD = 16, 256 -- after how many entries it is looked for old ones, and how many of them go at a time

  -- nth is the number of a job in its tree, as its ID ends with; '' for the root.
  local function nth(id) return string.sub(id, #tree(id) + 2) end

  -- old returns how many of the first entries of a log are older than the namespace keeps them: a few hundred at most.
  local function old(k)
    local span = tonumber(call('HGET', P .. 'retention', 'log') or '')
    if not span then return 0 end
    local function gone(at) return tonumber(string.match(call('LRANGE', k, at, at)[1], '^%d+')) < NOW - span end
    if not gone(0) then return 0 end
    local low, high = 1, math.min(OLD, call('LLEN', k) - 1) -- the entry before low is old; the last one is what was added
    while low < high do
      local middle = math.floor((low + high) / 2)
      if gone(middle) then low = middle + 1 else high = middle end
    end
    return low
  end

  -- log adds an entry to a tree's log: what it is, where messages were sent, the text. The tree's field `cut`
  -- counts those that were cut off, so that each keeps its number.
  local function log(id, what, where, text, most)
    local root = tree(id)
    local k = P .. 'l:' .. root
    local len = call('RPUSH', k, MOMENT .. '\31' .. nth(id) .. '\31' .. what .. '\31' .. where .. '\31' .. text)
    local cut = len >= most + SLACK and len - most or len % EACH == 0 and old(k) or 0
    if cut == 0 then return end
    call('LTRIM', k, cut, -1)
    call('HINCRBY', P .. 't:' .. root, 'cut', cut)
  end

  -- note logs something that is no run.
  function note(id, text) log(id, 'n', '', text, ENTRIES) end

  -- by_hand logs what somebody has done to a job from outside of its runs; the text is empty if that is not known. It comes
  -- last: if somebody has damaged the log, what was to be done is done.
  function by_hand(id, text)
    if text ~= '' and not FULL then note(id, text) end
  end

  -- moved is what the log says of n messages that were sent to where s says, the first of them as the given one.
  function moved(s, from, n)
    return nth(s.id) .. ' ' .. s.dir .. ' ' .. s.port .. ' ' .. str(from) .. ' ' .. str(n)
  end

  -- log_run logs what a run, or somebody outside, read and wrote.
  function log_run(id, entry)
    if entry == '' then return end
    local where = {}
    for i, s in ipairs(sent or {}) do where[i] = moved(s, s.from, s.n) end
    log(id, 'r', table.concat(where, ','), entry, ENTRIES)
    sent = nil
  end

  -- log_pack logs what several runs read and wrote, as one entry: with them there are half as many, so that their
  -- number does not grow too much.
  function log_pack(id, p, where)
    if p.entries == '' then return end
    local several = string.find(p.counts, ' ', 1, true)
    log(id, several and p.counts or 'r', where, p.entries, several and PACKS or ENTRIES)
  end
end
