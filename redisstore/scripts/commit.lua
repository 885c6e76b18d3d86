-- commit: apply transactions of job deltas, each up to its first delta that no longer holds.
-- KEYS: due
-- ARGV: transactions, then of each: deltas, then of each what delta() in tx.lua reads
-- reply: {{held, why, again, blocked} of each transaction, {ready jobs}}
local out = {}
for i = 1, num() do out[i] = (transact()) end
return { out, wakes() }
