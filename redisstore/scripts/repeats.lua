-- repeats.lua: root jobs that run again, at a time, after they have completed. Go says when: the field `repeat` of a job is its
-- schedule, and `repeated` how far it is, with the version of the job then. Both are texts that scripts do not read.

local repeats = {} -- as Lua allows few local names

-- trim keeps of the messages in an Out port that nobody has read those of the last repetition that wrote any there: the field
-- r.<port> is how many ever came before them. Dead letters stay.
function repeats.trim(id)
  local k = key(id)
  for _, field in ipairs(call('HKEYS', k)) do
    local port = string.match(field, '^o%.(.+)$')
    if port and port ~= 'errors' and port ~= '*' then
      local list = k .. ':o:' .. port
      local v = call('HMGET', k, 'h.o.' .. port, 'r.' .. port)
      local head, len = tonumber(v[1] or '0'), call('LLEN', list)
      local before = tonumber(v[2] or '0')
      if head + len > before then
        local old = math.max(before - head, 0)
        if old > 0 then
          call('LTRIM', list, old, -1)
          call('HINCRBY', k, 'h.o.' .. port, old)
        end
        call('HSET', k, 'r.' .. port, str(head + len))
      end
    end
  end
end

-- on notes that a repetition of a job has ended, and returns the event that follows and when (ms) it runs again, nil if that
-- is now, or never. A delta that was handed back ends none: it passes times over.
function repeats.on(d, j)
  if not d.handed then repeats.trim(d.id) end
  call('HSET', key(d.id), 'repeated', d.repeated .. ' ' .. str(j.version))
  if d.at < 0 then return 'complete', nil end -- that was the last one
  if d.at <= NOW then
    line.timed(j, d.at)
    return 'requeue', nil
  end
  return 'reschedule', d.at
end
