-- news.lua: which jobs have changed, for those who follow that.
news.MOST = 10000 -- jobs whose last change is kept, about

-- news.kept returns what somebody follows, each with the number of the last change: roots, all, and trees by their roots.
function news.kept()
  local sets = {}
  local function keep(of) sets[of] = tonumber(call('ZRANGE', P .. 'changes:' .. of, -1, -1, 'WITHSCORES')[2]) end
  keep('roots')
  keep('all')
  for _, root in ipairs(call('SMEMBERS', P .. 'changes:trees')) do keep(root) end
  return sets
end

-- news.note keeps that a job has changed: once a call, as nobody reads in the midst of one. Numbers of changes grow, also
-- when the clock is set back, and when a set was forgotten meanwhile. What moved concerns only those who follow its tree:
-- messages came to its ports, or went, or its ports have changed.
function news.note(id, root, moved)
  if not news.sets or news.noted[id] == 'all' or moved and news.noted[id] then return end
  news.noted[id] = moved and 'moved' or 'all'
  for of, last in pairs(news.sets) do
    if of == tree(id) or not moved and (of == 'all' or of == 'roots' and root) then
      local k = P .. 'changes:' .. of
      news.sets[of] = math.max(NOW * 1000, last + 1)
      call('ZADD', k, str(news.sets[of]), id)
      if call('ZCARD', k) > news.MOST + 100 then call('ZREMRANGEBYRANK', k, 0, 99) end
    end
  end
end

-- news.moved keeps that messages came to ports of a job, or went, or that its ports have changed.
function news.moved(id) news.note(id, false, true) end
