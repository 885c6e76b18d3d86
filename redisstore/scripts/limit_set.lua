-- limit_set: say how many runs go on at once under a limit, and let those go on that wait for a place that there is now.
-- KEYS: due, of the limit's home
-- ARGV: limit without a value, places or 0 for no limit any more, names of limits that are in use…
-- reply: {'1' if more could go on: it is to be called again, {what is left}}
local base, max = arg(), arg()
local more = places.set(base, max, list())
return { more and '1' or '', wakes() }
