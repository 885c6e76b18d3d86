package redisstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// commands are those that the store, its scripts, asynq and redislock need, with arguments
// for a dry run. K stands for a key, C for a channel.
var commands = []string{
	"ping", "time", "eval x 1 K", "evalsha x 1 K",
	"get K", "set K v", "setex K 1 v", "incr K", "mget K", "mset K v", "msetnx K v", "getrange K 0 1",
	"del K", "unlink K", "exists K", "expire K 1", "expireat K 1", "pexpire K 1", "pttl K",
	"hset K f v", "hsetnx K f v", "hget K f", "hmget K f", "hgetall K", "hdel K f", "hexists K f", "hkeys K", "hvals K", "hlen K", "hincrby K f 1",
	"lpush K v", "rpush K v", "lpop K", "rpop K", "llen K", "lrange K 0 1", "ltrim K 0 1", "lrem K 0 v", "rpoplpush K K",
	"sadd K v", "srem K v", "smembers K", "scard K", "sismember K v",
	"zadd K 1 v", "zrem K v", "zscore K v", "zcard K", "zcount K 0 1", "zrange K 0 1", "zrangebyscore K 0 1", "zrangebylex K - +",
	"zremrangebyscore K 0 1", "zremrangebyrank K 0 1",
	"xadd K * f v", "xlen K", "xrange K - +", "xrevrange K + -", "xdel K 0-1",
	"publish C v", "subscribe C",
}

// lookers are those that only people who look need.
var lookers = []string{"info", "dbsize", "config|get x", "memory|usage K", "scan 0"}

// permissions asks whether the user of the URL may do all that is needed. Nothing is done.
func (e *examiner) permissions(ctx context.Context) error {
	c := e.all[0].rdb
	user, err := c.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return e.untold(err)
	}
	job := e.keys.shard(0) + "j:x"
	channel := e.keys.channel("/x")
	keys := []string{job, e.keys.types(), "asynq:{weir:" + e.keys.namespace + ":default}:x", "asynq:queues"}
	needed := withArgs(commands, job, channel)
	for _, key := range keys[1:] { // that they may be touched at all
		needed = append(needed, []any{"get", key}, []any{"set", key, "v"})
	}
	needed = append(needed, []any{"publish", "asynq:cancel", "v"}, []any{"subscribe", "asynq:cancel"})
	missing, err := e.refused(ctx, c, user, needed)
	if err != nil {
		return e.untold(err)
	}
	fewer, err := e.refused(ctx, c, user, withArgs(lookers, job, channel))
	if err != nil {
		return e.untold(err)
	}
	if len(missing) > 0 {
		e.problem("redis-cli ACL SETUSER "+user+" ~weir:* ~asynq:* &weir:* &asynq:* with +NAME for each command that is missing, then ACL SAVE",
			"user %s may not use %s", user, few(missing))
	}
	if len(fewer) > 0 {
		e.warn("redis-cli ACL SETUSER "+user+strings.ReplaceAll(" "+strings.Join(fewer, " "), " command ", " +")+", then ACL SAVE", "user %s may not use %s, which weir stats, queues and doctor would", user, few(fewer))
	}
	if !e.found() {
		e.ok("user %s may do all that is needed", user)
	}
	return nil
}

// untold turns a refusal to answer into a reason to skip the check.
func (e *examiner) untold(err error) error {
	var answer redis.Error
	if errors.As(err, &answer) && !passing(err) {
		return fmt.Errorf("%w: %w", errOtherServer, err)
	}
	return err
}

// withArgs turns commands as they are written above into what is sent.
func withArgs(lines []string, key, channel string) [][]any {
	var out [][]any
	for _, line := range lines {
		var words []any
		for _, w := range strings.Fields(line) {
			switch w {
			case "K":
				w = key
			case "C":
				w = channel
			}
			words = append(words, w)
		}
		name, sub, ok := strings.Cut(words[0].(string), "|") //nolint:forcetypeassert // made above
		if ok {
			words = append([]any{name, sub}, words[1:]...)
		}
		out = append(out, words)
	}
	return out
}

// noPermission is what Redis says of the command, key or channel that a user may not use.
var noPermission = regexp.MustCompile(`'([^']*)' (command|key|channel)`)

// refused returns what a user may not use of what some commands need.
func (e *examiner) refused(ctx context.Context, c *redis.Client, user string, all [][]any) ([]string, error) {
	replies := make([]*redis.Cmd, len(all))
	_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, words := range all {
			replies[i] = p.Do(ctx, append([]any{"ACL", "DRYRUN", user}, words...)...)
		}
		return nil
	})
	var names []string
	for _, r := range replies {
		text, err := r.Text()
		if err != nil {
			return nil, err
		}
		if text == "OK" {
			continue
		}
		if m := noPermission.FindStringSubmatch(text); m != nil {
			text = m[2] + " " + m[1]
		}
		names = append(names, text)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
