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

// logPage is how many entries are read at a time.
const logPage = 500

// Log implements job.History.
func (s *Store) Log(ctx context.Context, id job.ID, after string, limit int) ([]job.Entry, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	return s.logEntries(id, s.rdb.XRangeN(ctx, s.keys.log(id), from, "+", int64(limit)))
}

// LogBack implements job.History.
func (s *Store) LogBack(ctx context.Context, id job.ID, before string, limit int) ([]job.Entry, error) {
	end := "+"
	if before != "" {
		end = "(" + before
	}
	return s.logEntries(id, s.rdb.XRevRangeN(ctx, s.keys.log(id), end, "-", int64(limit)))
}

func (s *Store) logEntries(id job.ID, cmd *redis.XMessageSliceCmd) ([]job.Entry, error) {
	messages, err := cmd.Result()
	if err != nil && !isNil(err) {
		return nil, s.explain(err)
	}
	out := make([]job.Entry, 0, len(messages))
	for _, m := range messages {
		e, err := s.logEntry(m)
		if err != nil {
			return nil, fmt.Errorf("reading the log of job %s: %w", id, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (s *Store) logEntry(m redis.XMessage) (job.Entry, error) {
	text := func(field string) string {
		v, _ := m.Values[field].(string)
		return v
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	at, _ := strconv.ParseInt(ms, 10, 64) // the ID of a stream entry is <ms>-<n>
	e := job.Entry{Position: m.ID, At: time.UnixMilli(at).UTC(), Job: job.ID(text("job"))}
	p := s.secrets.place(job.KindLog, e.Job, "")
	note := text("note")
	run, err := s.secrets.show(p, []byte(text("run")))
	if err != nil {
		note = text("run") // people without keys see at least that there was a run
	}
	if note != "" {
		var keys json.RawMessage
		if e.Note, keys = port.Split(s.secrets.visible(p, json.RawMessage(note))); keys != nil {
			return e, port.Decode(keys, &e.Context)
		}
		return e, nil
	}
	e.Run = &job.RunEntry{}
	if err := json.Unmarshal(run, e.Run); err != nil {
		return e, err
	}
	e.Run.At, e.Run.Job = e.At, e.Job
	if sent := text("sent"); sent != "" {
		return e, json.Unmarshal([]byte(sent), &e.Run.Sent)
	}
	return e, nil
}

// last calls fn for the entries of a tree's log, newest first, until fn returns false.
func (s *Store) last(ctx context.Context, id job.ID, fn func(job.Entry) bool) error {
	for before := ""; ; {
		entries, err := s.LogBack(ctx, id, before, logPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !fn(e) {
				return nil
			}
			before = e.Position
		}
		if len(entries) < logPage {
			return nil
		}
	}
}

// Logs implements job.Inspector.
func (s *Store) Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error) {
	var out []job.LogEntry
	err := s.last(ctx, id, func(e job.Entry) bool {
		if e.Run == nil && e.Job == id {
			out = append(out, job.LogEntry{At: e.At, Job: id, Entry: e.Note, Context: e.Context})
		}
		return len(out) < limit
	})
	slices.Reverse(out)
	return out, err
}

// Runs implements job.History.
func (s *Store) Runs(ctx context.Context, id job.ID, limit int) ([]job.RunEntry, error) {
	var out []job.RunEntry
	err := s.last(ctx, id, func(e job.Entry) bool {
		if e.Run != nil && (id.IsRoot() || e.Job == id) {
			out = append(out, *e.Run)
		}
		return len(out) < limit
	})
	slices.Reverse(out)
	return out, err
}
