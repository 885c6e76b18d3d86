-- news.lua: which jobs have changed, for those who follow that.
news.MOST = 10000 -- jobs whose last change is kept, about

-- news.kept returns the sets of changes that are kept while somebody follows them, each with the number of the last change.
function news.kept()
  local sets = {}
  for _, set in ipairs({ 'roots', 'all' }) do
    local k = P .. 'changes:' .. set
    sets[k] = tonumber(call('ZRANGE', k, -1, -1, 'WITHSCORES')[2])
  end
  return sets
end

-- news.note keeps that a job has changed: once a call, as nobody reads in the midst of one. Numbers of changes grow, also
-- when the clock is set back, and when a set was forgotten meanwhile.
function news.note(id, root)
  if not news.sets or news.noted[id] then return end
  news.noted[id] = true
  for k, last in pairs(news.sets) do
    if root or k == P .. 'changes:all' then
      news.sets[k] = math.max(NOW * 1000, last + 1)
      call('ZADD', k, str(news.sets[k]), id)
      if call('ZCARD', k) > news.MOST + 100 then call('ZREMRANGEBYRANK', k, 0, 99) end
    end
  end
end
