-- tree_expire: remove some of what is past its retention.
-- KEYS: due
-- ARGV: none
-- reply: {1 if more is to be removed now, {ready jobs}}
probe()

-- first returns when the next job is past its retention, and that job.
local function first()
  local head = call('ZRANGE', P .. 'retained', 0, 0, 'WITHSCORES')
  return head[2] and tonumber(head[2]) or math.huge, head[1]
end

while spent < PIECE do
  local piece = call('LPOP', P .. 'expired')
  if piece then
    local what, id, rest = string.match(piece, '^(%S+) (%S+) ?(.*)$')
    if what == 'below' then
      local act, from, life = string.match(rest, '^(%S+) (%S+) (%S*)$')
      if below(id, act, from, life) then call('UNLINK', key(id) .. ':c') end
      break -- that was enough for one script
    elseif what == 'look' then
      local life, todo = string.match(rest, '^(%S*) (%S+)$')
      local list = {}
      for one in string.gmatch(todo, '[^,]+') do list[#list + 1] = one end
      consider(id, life == LIFE and list or nil) -- else the cursors mean nothing
    else
      remove(id, what)
      spent = spent + 2 * COST
    end
  else
    local at, id = first()
    if at > NOW then break end
    consider(id)
  end
end
local at = first()
local more = call('LLEN', P .. 'expired') > 0
if more or at <= NOW then
  call('ZADD', P .. 'due', str(NOW + LOOK), '!retain')
elseif at <= NOW + retain.soon then -- what comes soon after goes together
  call('ZADD', P .. 'due', str(math.max(at, NOW + math.min(math.floor(least / 16), AGAIN))), '!retain')
else
  call('ZREM', P .. 'due', '!retain')
end
urgent['!retain'] = nil
return { (more or at <= NOW) and 1 or 0, wakes() }
