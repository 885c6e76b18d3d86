-- workkit_end: forget entries of a schedule of WorkKit whose last runs have ended, of which nobody was told.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: name of the schedule, then of each: ID, root of its tree
-- reply: 1
local name = arg()
while cursor < #ARGV do kit.ended(name, arg(), arg()) end
return 1
