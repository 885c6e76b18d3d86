-- repeats.lua: root jobs that run again, at a time, after they have completed. Go says when: the field `repeat` of a job is its
-- schedule, and `repeated` how far it is, with the version of the job then. Both are texts that scripts do not read.

local repeats = {} -- as Lua allows few local names

-- trim keeps of the messages in Out ports that nobody has read those that the last repetition wrote: the field r.<port>
-- is how many ever came before them. Dead letters stay.
function repeats.trim(id)
  local k = key(id)
  for _, field in ipairs(call('HKEYS', k)) do
    local port = string.match(field, '^o%.(.+)$')
    if port and port ~= 'errors' and port ~= '*' then
      local list = k .. ':o:' .. port
      local v = call('HMGET', k, 'h.o.' .. port, 'r.' .. port)
      local head, len = tonumber(v[1] or '0'), call('LLEN', list)
      local old = math.min(math.max(tonumber(v[2] or '0') - head, 0), len)
      if old > 0 then
        call('LTRIM', list, old, -1)
        call('HINCRBY', k, 'h.o.' .. port, old)
      end
      if head + len > 0 then call('HSET', k, 'r.' .. port, str(head + len)) end
    end
  end
end

-- on notes that a repetition of a job has ended, and returns the event that follows and when (ms) it runs again, nil if that
-- is now. A delta that was handed back ends none: it passes times over.
function repeats.on(d, j)
  if not d.handed then repeats.trim(d.id) end
  call('HSET', key(d.id), 'repeated', d.repeated .. ' ' .. str(j.version))
  if d.at <= NOW then return 'requeue', nil end
  return 'reschedule', d.at
end
