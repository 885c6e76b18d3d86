package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// The log of a tree is one stream, capped at about 10,000 entries. An entry has the
// field job, and either note (what the worker logged) or run and sent (what a run read and
// wrote, and where its messages went), all JSON.

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// entries calls fn for the entries of a tree's log, newest first, until fn returns false.
func (s *Store) entries(ctx context.Context, id job.ID, fn func(at time.Time, values map[string]any) (bool, error)) error {
	const page = 500
	for end := "+"; ; {
		entries, err := s.rdb.XRevRangeN(ctx, s.keys.log(id), end, "-", page).Result()
		if err != nil && !isNil(err) {
			return s.explain(err)
		}
		for _, e := range entries {
			ms, _, _ := strings.Cut(e.ID, "-")
			at, _ := strconv.ParseInt(ms, 10, 64) // the ID of a stream entry is <ms>-<n>
			if more, err := fn(time.UnixMilli(at).UTC(), e.Values); err != nil || !more {
				return err
			}
		}
		if len(entries) < page {
			return nil
		}
		end = "(" + entries[len(entries)-1].ID
	}
}

// Logs implements job.Inspector.
func (s *Store) Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error) {
	var out []job.LogEntry
	err := s.entries(ctx, id, func(at time.Time, values map[string]any) (bool, error) {
		note, ok := values["note"].(string)
		if ok && values["job"] == string(id) {
			e := job.LogEntry{At: at, Job: id}
			var keys json.RawMessage
			if e.Entry, keys = port.Split(json.RawMessage(note)); keys != nil {
				if err := port.Decode(keys, &e.Context); err != nil {
					return false, fmt.Errorf("reading the log of job %s: %w", id, err)
				}
			}
			out = append(out, e)
		}
		return len(out) < limit, nil
	})
	slices.Reverse(out)
	return out, err
}

// Runs implements job.History.
func (s *Store) Runs(ctx context.Context, id job.ID, limit int) ([]job.RunEntry, error) {
	var out []job.RunEntry
	err := s.entries(ctx, id, func(at time.Time, values map[string]any) (bool, error) {
		run, ok := values["run"].(string)
		who, _ := values["job"].(string)
		if !ok || !id.IsRoot() && who != string(id) {
			return true, nil
		}
		e := job.RunEntry{At: at, Job: job.ID(who)}
		if err := json.Unmarshal([]byte(run), &e); err != nil {
			return false, fmt.Errorf("reading the log of job %s: %w", id, err)
		}
		if sent, ok := values["sent"].(string); ok {
			if err := json.Unmarshal([]byte(sent), &e.Sent); err != nil {
				return false, fmt.Errorf("reading the log of job %s: %w", id, err)
			}
		}
		e.At, e.Job = at, job.ID(who)
		out = append(out, e)
		return len(out) < limit, nil
	})
	slices.Reverse(out)
	return out, err
}
