-- expire.lua: removing what is past its retention.

local AGAIN, LATEST = 60 * LOOK, 3600 * LOOK -- ms after which a job is looked at again that is not to go yet

local COST = 25 -- values that a job counts for that is looked at, and twice for one that is removed

local least = 0 -- ms for which what was removed by this call was kept at least

-- stirs tells whether a job may still run, or somebody holds it. Of a tree whose root has failed nobody waits for the
-- suspended ones.
local function stirs(status, token, subscribed, id, failed)
  local k = key(id)
  if token and token ~= '' or call('EXISTS', k .. ':lock') == 1 then return true end
  if status == S.terminated or status == S.failed then return false end
  if status ~= S.completed and not (failed and status == S.suspended) then return true end
  return subscribed and subscribed ~= '' and not failed or call('EXISTS', k .. ':t') == 1
end

-- unread tells whether Out ports of a job hold messages.
local function unread(id)
  local k, lists = key(id), {}
  for _, field in ipairs(call('HKEYS', k)) do
    local port = string.match(field, '^o%.(.+)$')
    if port then lists[#lists + 1] = k .. ':o:' .. port end
  end
  for i = 1, #lists, CHUNK do
    if call('EXISTS', unpack(lists, i, math.min(i + CHUNK - 1, #lists))) > 0 then return true end
  end
end

-- look says why a job is not to go, 'busy' or 'unread', or nil; and whether its children are looked at as it is:
-- nobody but their parent reads what children write that are no members of a graph, and it does so in place; but dead letters
-- are for people.
local function look(id, failed, member)
  spent = spent + COST
  local v = call('HMGET', key(id), 'status', 'token', 'subscribed', 'graph')
  if not v[1] then return end
  if stirs(v[1], v[2], v[3], id, failed) then return 'busy' end
  local why = (member and unread(id) or call('ZSCORE', P .. 'dead', id)) and 'unread' or nil
  return why, member and v[4] == '1'
end

-- search looks below the jobs of todo, each '<job>:<from>:<1 if its children are members>', and returns why one of the jobs
-- there is not to go, or nil. What it leaves in todo is for the next script.
local function search(root, failed, todo)
  local most = spent + MANY * COST
  while #todo > 0 and spent < most do
    local id, from, member = string.match(table.remove(todo), '^(.*):(%d+):(%d)$')
    local page = call('HSCAN', key(id) .. ':c', from, 'COUNT', MANY)
    if page[1] ~= '0' then todo[#todo + 1] = id .. ':' .. page[1] .. ':' .. member end
    for n = 2, #page[2], 2 do
      local child = page[2][n]
      if tree(child) == tree(root) then -- else it was adopted, and goes on alone
        local why, members = look(child, failed, member == '1')
        if why then return why end
        if call('EXISTS', key(child) .. ':c') == 1 then todo[#todo + 1] = child .. ':0:' .. (members and '1' or '0') end
      end
    end
  end
end

-- unseen tells whether a parent has still to be told of the end of a child.
local function unseen(j)
  if not j.parent or tree(j.parent) ~= tree(j.id) or load(j.parent).status == '' or inactive(load(j.parent)) then return false end
  return call('ZSCORE', key(j.parent) .. ':w', call('HGET', key(j.id), 'name') or '')
end

-- removed counts a tree, or a child, that was removed, and for how long (ms) it was kept.
local function removed(span)
  least = math.min(least > 0 and least or math.huge, math.max(span or 1, 1))
  call('INCR', P .. 'removed')
end

-- dropped removes a tree that is one record, unless it is to be kept or holds unread messages, and tells whether it has looked
-- at it so: one that somebody may hold, or follow, is looked at as other trees are.
local function dropped(root)
  local r = compact.of(root)
  if not r or r.status ~= 'over' or news.sets or watching() then return false end
  local span, locks, unread, keys = compact.span(r.keep, r.def.jobs == 1), {}, {}, { P .. 'l:' .. root, P .. 't:' .. root }
  for n = 0, r.def.jobs - 1 do
    local k = stem(compact.id(r, n))
    locks[n + 1], keys[#keys + 1] = k .. ':lock', k .. ':s'
    for _, port in ipairs(r.def[n].outputs) do unread[#unread + 1] = k .. ':o:' .. port end
    for _, port in ipairs(r.def[n].inputs) do keys[#keys + 1] = k .. ':i:' .. port end
  end
  if span == false or call('EXISTS', unpack(locks)) > 0 then return false end
  call('ZREM', P .. 'retained', root)
  spent = spent + COST * r.def.jobs
  if not span then return true end -- it is to be kept
  if #unread > 0 and call('EXISTS', unpack(unread)) > 0 then return call('ZADD', P .. 'kept', str(NOW), root) end
  call('UNLINK', unpack(keys))
  compact.leave(r)
  call('ZREM', P .. 'index', root)
  retain.forget(root, true)
  for n = r.def.jobs - 1, 0, -1 do forgotten(compact.id(r, n)) end
  removed(span)
  return true
end

-- consider removes a job, and all below it, that is past its retention, unless it has come to life or is to be kept.
-- todo is where a search goes on that earlier scripts began.
local function consider(id, todo)
  if not todo and dropped(id) then return end
  local j = load(id)
  local span, failed = retain.span(j), j.status == S.failed
  local released = j.parent and call('HGET', key(id), 'retain') == 'release'
  call('ZREM', P .. 'retained', id)
  if not retain.over(j.status) or j.pgraph or not span and not released then return end -- it is put there anew when it settles
  local function later() retain.at(id, NOW + math.min(math.max(span or 0, AGAIN), LATEST)) end
  if marked(id) or unseen(j) then return later() end
  local why, members = look(id, failed, not j.parent)
  if not why then
    todo = todo or { id .. ':0:' .. (members and '1' or '0') }
    why = search(id, failed, todo)
  end
  if why == 'unread' then
    call('ZADD', P .. 'kept', str(NOW), id)
  elseif why then
    later()
  elseif #todo > 0 then
    retain.pieces({ 'look ' .. id .. ' ' .. LIFE .. ' ' .. table.concat(todo, ',') })
  else
    part(j)
    removed(span)
    erase(id, failed and 'expireall' or 'expire')
    spent = spent + COST
  end
end
