-- args_merge: give a job other args, unless it has begun its first run, or that of its present repetition, or has other
-- ones by now.
-- KEYS: due
-- ARGV: job, token, its type, the version of the type that the args are of, args that it has, its args from now on
-- reply: {'ok' | 'begun' | 'other' of another type or version | 'moved' if it has other args | 'gone', {ready jobs}}
local id, token, type, version, old, new = arg(), arg(), arg(), num(), arg(), arg()
local j = load(id)
if j.status == '' then return { 'gone', {} } end
if repeated(token) then return { 'ok', {} } end
local v = call('HMGET', key(id), 'args', 'repeated', 'deaths')
local since = string.match(v[2] or '', ' (%d+)$') or '0' -- the version when the present repetition was scheduled
local died = string.match(v[3] or '', '^(%d+):') == str(j.version)
local over = retain.over(j.status) or j.status == S.terminating
if j.token or str(j.version) ~= since or died or over then return { 'begun', {} } end
local wrote = tonumber(string.match(j.type, '@(%d*)') or '') or 1
if line.base(j.type) ~= type or wrote ~= version then return { 'other', {} } end
if (v[1] or '') ~= old then return { 'moved', {} } end
remember(token)
amend.args(j, new, version)
return { 'ok', wakes() }
