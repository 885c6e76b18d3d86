-- channel_publish: publish messages to a channel from outside of runs.
-- KEYS: due of the hub, weir:{<namespace>}:due
-- ARGV: channel, token, messages, message…
-- reply: {'ok', {ready jobs}}
local channel, token = arg(), arg()
if repeated(token) then return { 'ok', {} } end
remember(token)
hub.publish(channel, list())
return { 'ok', wakes() }
