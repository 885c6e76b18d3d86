-- handler_set: store a new version of the handler of a type, or that there is none any more.
-- KEYS: due, that of the channels
-- ARGV: type, ID of the version, text or '' for none, how many versions are kept, how many types may have one
-- reply: {number of the version, or -1 if there are too many types}
-- The first version is number 1, also where none was expected of a type before: that is number 0.
-- In `handlers` each type has its newest version, and the field '' counts all changes; `handler:<type>` lists versions, the
-- newest first. A version is its number, when it was stored, its ID and its text, with blanks between.
local type, id, text, kept, most = arg(), arg(), arg(), num(), num()
local all = P .. 'handlers'
local number, _, last = string.match(call('HGET', all, type) or '', '^(%d+) (%d+) (%S+)')
if last == id then return { tonumber(number) } end -- a repeat of this call
if not number and call('HLEN', all) > most then return { -1 } end
number = number and tonumber(number) + 1 or text == '' and 0 or 1
local version = table.concat({ str(number), str(NOW), id, text }, ' ')
call('LPUSH', P .. 'handler:' .. type, version)
call('LTRIM', P .. 'handler:' .. type, 0, kept - 1)
call('HSET', all, type, version)
call('HINCRBY', all, '', 1)
return { number }
