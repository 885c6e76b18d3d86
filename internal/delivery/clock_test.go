package delivery

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// Only what asynq says of its clock is shifted.
func TestShift(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const skew = -30 * time.Minute
	late := now.Add(skew)
	statistics := now.Add(90 * 24 * time.Hour).Unix()
	for name, c := range map[string]struct{ words, want []any }{
		"seconds": {
			[]any{"evalsha", "sha", 4, "asynq:{q}:pending", "p", "a", "l", now.Add(30 * time.Second).Unix(), "asynq:{q}:t:"},
			[]any{"evalsha", "sha", 4, "asynq:{q}:pending", "p", "a", "l", late.Add(30 * time.Second).Unix(), "asynq:{q}:t:"},
		},
		"milliseconds": {[]any{"set", "asynq:x", now.UnixMilli()}, []any{"set", "asynq:x", late.UnixMilli()}},
		"nanoseconds": {
			[]any{"eval", "return 1", 2, "asynq:{q}:t:id", "asynq:{q}:pending", []byte("task"), "id", now.UnixNano()},
			[]any{"eval", "return 1", 2, "asynq:{q}:t:id", "asynq:{q}:pending", []byte("task"), "id", late.UnixNano()},
		},
		"scores": {
			[]any{"zadd", "asynq:{q}:lease", "xx", float64(now.Unix()), "id"},
			[]any{"zadd", "asynq:{q}:lease", "xx", float64(late.Unix()), "id"},
		},
		"no times": {
			[]any{"evalsha", "sha", 1, "asynq:{q}:active", "id", statistics, int64(math.MaxInt64), int64(0), 15.0},
			[]any{"evalsha", "sha", 1, "asynq:{q}:active", "id", statistics, int64(math.MaxInt64), int64(0), 15.0},
		},
		"a script of Weir":  {[]any{"evalsha", "sha", 1, "weir:{x:0}:due", now.Unix()}, []any{"evalsha", "sha", 1, "weir:{x:0}:due", now.Unix()}},
		"a command of Weir": {[]any{"zadd", "weir:{x:0}:due", float64(now.Unix()), "id"}, []any{"zadd", "weir:{x:0}:due", float64(now.Unix()), "id"}},
		"no key":            {[]any{"ping"}, []any{"ping"}},
	} {
		shift(skew).change(c.words, now)
		if !reflect.DeepEqual(c.words, c.want) {
			t.Errorf("%s: %v, want %v", name, c.words, c.want)
		}
	}
}

// Servers whose clocks are wrong hand out all notifications, and asynq takes its times from those clocks.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	url, namespace := redistest.SharedRedis(t), redistest.Namespace(t)
	for _, skew := range []time.Duration{30 * time.Minute, -30 * time.Minute} {
		var k taken
		rdb := client(t, url)
		rdb.AddHook(shift(skew))
		b := New(rdb, namespace)
		queue := "skewed" + strings.TrimPrefix(skew.String(), "-")
		notifications := []Notification{notificationOfT(1, queue)}
		if _, err := b.Enqueue(t.Context(), notifications); err != nil {
			t.Fatal(err)
		}
		since, err := rdb.HGet(t.Context(), "asynq:{"+b.prefix+queue+"}:t:"+notifications[0].taskID(), "pending_since").Int64()
		if away := time.Until(time.Unix(0, since)) - skew; err != nil || away.Abs() > time.Minute {
			t.Errorf("with a clock wrong by %s asynq notes %s from now, %v", skew, time.Until(time.Unix(0, since)), err)
		}
		s := serve(t, b, ServeConfig{Queues: map[string]int{queue: 1}, Handle: k.handle})
		k.wait(t, 1)
		s.Stop()
		b.Close()
	}
}
