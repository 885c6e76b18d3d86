package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
)

// asynqKeys is what the keys of asynq begin with.
const asynqKeys = "asynq:"

// asynqKey is a key that asynq has for a queue, as it calls that.
func asynqKey(queue, what string) string { return asynqKeys + "{" + queue + "}:" + what }

// wrongClock makes asynq believe that it is earlier or later than it is, as failpoints say: what
// it tells Redis of its clock is shifted on the way. Commands on keys that are not its own
// pass as they are.
func wrongClock(rdb redis.UniversalClient) {
	if skew := failpoint.Skew(); skew != 0 {
		rdb.AddHook(shift(skew))
	}
}

// shift is by how much times are.
type shift time.Duration

// DialHook implements redis.Hook.
func (s shift) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s shift) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.change(cmd.Args(), time.Now())
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s shift) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.change(cmd.Args(), time.Now())
		}
		return next(ctx, cmds)
	}
}

// change shifts the times among the words of a command of asynq.
func (s shift) change(words []any, now time.Time) {
	first := 1
	if name, ok := words[0].(string); ok && strings.HasPrefix(name, "eval") {
		first = 3 // behind the script and the number of keys
	}
	if len(words) <= first {
		return
	}
	if key, ok := words[first].(string); !ok || !strings.HasPrefix(key, asynqKeys) {
		return
	}
	for i, word := range words {
		switch n := word.(type) {
		case int64:
			words[i] = n + s.of(n, now)
		case float64: // the score of a sorted set
			words[i] = n + float64(s.of(int64(n), now))
		}
	}
}

// of returns what is to be added to a number: nothing unless it is a time within a day of now, in
// seconds, milliseconds or nanoseconds.
func (s shift) of(n int64, now time.Time) int64 {
	const day = 24 * time.Hour
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Nanosecond} {
		if away := n - now.UnixNano()/int64(unit); -int64(day/unit) < away && away < int64(day/unit) {
			return int64(time.Duration(s) / unit)
		}
	}
	return 0
}
