package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// permissions asks whether the user of the URL may do all that is needed. Nothing is done.
func (e *examiner) permissions(ctx context.Context) error {
	c := e.all[0].rdb
	user, err := c.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return e.untold(err)
	}
	job := e.keys.shard(0) + "j:x"
	channel := e.keys.channel("/x")
	changes, err := e.refused(ctx, c, user, withArgs(writing, job, channel))
	if err != nil {
		return e.untold(err)
	}
	reader := len(changes) == len(writing)
	missing, err := e.refused(ctx, c, user, e.needed(job, channel, reader))
	if err != nil {
		return e.untold(err)
	}
	fewer, err := e.refused(ctx, c, user, withArgs(lookers, job, channel))
	if err != nil {
		return e.untold(err)
	}
	role := RoleReader
	if !reader {
		role = RoleWorker
		missing = append(missing, changes...)
	}
	if len(missing) > 0 {
		e.problem(fmt.Sprintf("weir acl %s | xargs redis-cli ACL SETUSER %s, then ACL SAVE", role, user),
			"user %s may not use %s", user, few(missing))
	}
	if len(fewer) > 0 {
		e.warn("redis-cli ACL SETUSER "+user+strings.ReplaceAll(" "+strings.Join(fewer, " "), " command ", " +")+", then ACL SAVE", "user %s may not use %s, which weir stats, queues and doctor would", user, few(fewer))
	}
	switch {
	case e.found():
	case reader:
		e.ok("user %s may look at everything and change nothing", user)
	default:
		e.ok("user %s may do all that is needed", user)
	}
	return nil
}

// needed is what a user needs to read, and, unless it is a reader, to touch what is asynq's.
func (e *examiner) needed(job, channel string, reader bool) [][]any {
	needed := append(withArgs(reading, job, channel), []any{"smembers", "asynq:queues"})
	keys := []string{e.keys.types(), "asynq:{weir:" + e.keys.namespace + ":default}:x"}
	for _, key := range keys {
		needed = append(needed, []any{"get", key})
	}
	if reader {
		return needed
	}
	for _, key := range append(keys, "asynq:queues", "asynq:servers", "asynq:workers") {
		needed = append(needed, []any{"set", key, "v"})
	}
	return append(needed, []any{"publish", "asynq:cancel", "v"}, []any{"subscribe", "asynq:cancel"})
}

// untold turns a refusal to answer into a reason to skip the check.
func (e *examiner) untold(err error) error {
	if e.answered(err) {
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
