package rig

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// remindersEvery is the time from one look at a shard to the next.
const remindersEvery = 100 * time.Millisecond

// unminded returns the jobs of a shard that are ready or run, and that nothing reminds the sweeper of. It looks at everything, which
// only a harness may.
// ARGV: what the keys of the shard begin with
var unminded = redis.NewScript(`
local P, found = ARGV[1], {}
local function due(id, what)
  if not redis.call('ZSCORE', P .. 'due', id) then found[#found + 1] = what .. ' ' .. id end
end
for _, set in ipairs(redis.call('KEYS', P .. 'ready:*#*')) do
  for _, id in ipairs(redis.call('ZRANGE', set, 0, -1)) do due(id, 'ready') end
end
for _, job in ipairs(redis.call('KEYS', P .. 'j:*')) do
  local id = string.sub(job, #P + 3)
  if not string.find(id, ':', 1, true) and redis.call('HGET', job, 'status') == 'running' then due(id, 'running') end
end
return found
`)

// reminders looks, until ctx ends, for jobs that nobody would miss if the process died that knows of them: to see what becomes of
// them takes a process that dies at the right moment, and then a shard in which nothing else happens.
func (r *rig) reminders(ctx context.Context) {
	looks := 0
	for shard := 0; pause(ctx, remindersEvery); shard = (shard + 1) % shards {
		prefix := keyPrefix(shard)
		found, err := unminded.Run(ctx, r.rdb, []string{prefix + "due"}, prefix).StringSlice()
		if err != nil && !errors.Is(err, redis.Nil) {
			continue // a server that is down or moves its slots is asked again
		}
		looks++
		for _, what := range found {
			r.bad(forgotten, "%.1f s after the start job %s, and nothing reminds the sweeper of it", time.Since(r.began).Seconds(), what)
		}
	}
	if looks < shards {
		r.bad(trouble, "who reminds the sweeper of jobs could be looked at %d times only", looks)
	}
}
