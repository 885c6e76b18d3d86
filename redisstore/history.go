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
// wrote, and where its messages went), all JSON; or runs, counts and sent of several runs, see packs.go:
// what each read and wrote, how many messages each sent, and where all of these went.
//
// A position is the ID of an entry of the stream, and behind a slash which of its runs, if it has several.

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// logPage is how many entries are read at a time.
const logPage = 500

// Log implements job.History.
func (s *Store) Log(ctx context.Context, id job.ID, after string, limit int) ([]job.Entry, error) {
	return s.readLog(ctx, id, after, limit, false)
}

// LogBack implements job.History.
func (s *Store) LogBack(ctx context.Context, id job.ID, before string, limit int) ([]job.Entry, error) {
	return s.readLog(ctx, id, before, limit, true)
}

// readLog returns the entries next to a position: those behind it, or if back those before it.
func (s *Store) readLog(ctx context.Context, id job.ID, at string, limit int, back bool) ([]job.Entry, error) {
	read, first, last := s.rdb.XRangeN, "-", "+"
	if back {
		read, first, last = s.rdb.XRevRangeN, "+", "-"
	}
	entry, run := position(at)
	switch {
	case run >= 0:
		first = entry
	case entry != "":
		first = "(" + entry
	}
	messages, err := read(ctx, s.keys.log(id), first, last, int64(limit)+1).Result() // one more, as of the first some may be known
	if err != nil && !isNil(err) {
		return nil, s.explain(err)
	}
	out := make([]job.Entry, 0, len(messages))
	for _, m := range messages {
		if len(out) >= limit {
			break
		}
		some, err := s.logEntry(m)
		if err != nil {
			return nil, fmt.Errorf("reading the log of job %s: %w", id, err)
		}
		if m.ID == entry {
			some = slices.DeleteFunc(some, func(e job.Entry) bool {
				_, n := position(e.Position)
				return back && n >= run || !back && n <= run
			})
		}
		if back {
			slices.Reverse(some)
		}
		out = append(out, some...)
	}
	return out[:min(len(out), limit)], nil
}

// position splits a position: the ID of an entry, and which of its runs, -1 for one that has not several.
func position(text string) (entry string, run int) {
	entry, n, several := strings.Cut(text, "/")
	if !several {
		return entry, -1
	}
	run, _ = strconv.Atoi(n) // whatever is no number is the first
	return entry, run
}

// logEntry decodes an entry of the stream, which is one of the log or, of several runs, some.
func (s *Store) logEntry(m redis.XMessage) ([]job.Entry, error) {
	text := func(field string) string {
		v, _ := m.Values[field].(string)
		return v
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	at, _ := strconv.ParseInt(ms, 10, 64) // the ID of a stream entry is <ms>-<n>
	e := job.Entry{Position: m.ID, At: time.UnixMilli(at).UTC(), Job: job.ID(text("job"))}
	var sent []job.Movement
	if where := text("sent"); where != "" {
		if err := json.Unmarshal([]byte(where), &sent); err != nil {
			return nil, err
		}
	}
	runs := text("runs")
	if runs == "" {
		err := s.noteOrRun(&e, text("note"), text("run"), sent)
		return []job.Entry{e}, err
	}
	var out []job.Entry
	counts := strings.Fields(text("counts"))
	for i, run := range strings.Split(runs, packed) {
		one := e
		one.Position += "/" + strconv.Itoa(i)
		n := 0
		if i < len(counts) {
			n, _ = strconv.Atoi(counts[i])
		}
		var mine []job.Movement
		if len(sent) == 1 && n > 0 {
			mine = []job.Movement{sent[0]}
			mine[0].N = n
			sent[0].From += int64(n)
		}
		if run == "" {
			continue // of which nothing was to be logged
		}
		if err := s.noteOrRun(&one, "", run, mine); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// noteOrRun decodes what a worker logged, or what a run read and wrote, into an entry.
func (s *Store) noteOrRun(e *job.Entry, note, run string, sent []job.Movement) error {
	p := s.secrets.place(job.KindLog, e.Job, "")
	plain, err := s.secrets.show(p, []byte(run))
	if err != nil {
		note = run // people without keys see at least that there was a run
	}
	if note != "" {
		var keys json.RawMessage
		if e.Note, keys = port.Split(s.secrets.visible(p, json.RawMessage(note))); keys != nil {
			return port.Decode(keys, &e.Context)
		}
		return nil
	}
	e.Run = &job.RunEntry{}
	e.Run.Sent = sent
	return e.Run.Decode(plain, e.Job, e.At)
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
