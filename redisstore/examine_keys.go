package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	// keysLooked is how many sequential keys of each shard are looked at.
	keysLooked = 200
	// longHeld is for how long a tree may sleep that holds a key which others wait for, before that is worth a remark.
	longHeld = time.Hour
)

// sequences looks for sequential keys that do not come to the next tree.
func (e *examiner) sequences(ctx context.Context) error {
	keys, err := e.SequenceKeys(ctx, keysLooked)
	if err != nil {
		return err
	}
	cmds := make([]*redis.SliceCmd, len(keys))
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range keys {
			cmds[i] = p.HMGet(ctx, e.keys.job(k.Holder, ""), "status", "ran", "created")
		}
		return nil
	}); err != nil {
		return err
	}
	waiting := int64(0)
	for i, k := range keys {
		waiting += k.Waiting
		if err := e.sequence(ctx, k, cmds[i].Val()); err != nil {
			return err
		}
	}
	if !e.found() {
		e.ok("%s held, %s waiting", counted(len(keys), "sequential key"), counted(waiting, "tree"))
	}
	return nil
}

// sequence looks at one key, and the status of its holder, when that ran last, and was created.
func (e *examiner) sequence(ctx context.Context, k store.SequenceKey, holder []any) error {
	var d decoder
	var text [3]string
	for i := range text {
		text[i], _ = holder[i].(string) // else it is not there
	}
	status, since := statemachine.Status(text[0]), d.time(cmp.Or(text[1], text[2]))
	slept := e.now.Sub(since).Round(time.Minute)
	switch {
	case status == "" || status == job.Completed || status == job.Failed || status == job.Terminated || status == job.Waiting:
		now, err := e.rdb.HGet(ctx, e.keys.keyHolders(k.Holder.Shard(e.keys.shards)), k.Key).Result()
		if err != nil || now != string(k.Holder) {
			return ignoreNil(err) // it went on meanwhile
		}
		e.problem(fmt.Sprintf("somebody has changed Weir's data by hand; redis-cli HDEL '%s' '%s', and create another tree with the key: those that wait follow it",
			e.keys.keyHolders(k.Holder.Shard(e.keys.shards)), k.Key),
			"sequential key %.80q is held by job %s, which %s; %s", k.Key, k.Holder, overText(status), waitFor(k))
	case status == job.Suspended && k.Waiting > 0 && slept >= longHeld:
		e.warn("weir why "+string(k.Holder), "sequential key %.80q is held by job %s, which has slept for %s; %s", k.Key, k.Holder, slept, waitFor(k))
	}
	return d.err
}

func ignoreNil(err error) error {
	if isNil(err) {
		return nil
	}
	return err
}

func overText(status statemachine.Status) string {
	if status == "" {
		return "does not exist"
	}
	return "is " + string(status)
}

func waitFor(k store.SequenceKey) string {
	if k.Waiting == 1 {
		return "1 tree waits for it"
	}
	return fmt.Sprintf("%d trees wait for it", k.Waiting)
}
