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

// The log of a tree is one list, capped at about 10,000 entries, and by their age if the namespace says so. An entry is the time, the number of the job,
// what it is, where messages were sent, and a text, with a byte 31 between them. It is
//   - n: a note, which is what the worker logged
//   - r: what a run read and wrote
//   - the numbers of messages that several runs sent, with blanks between: what each of them read and wrote, see
//     packs.go. What they sent went to one place.
//
// A position is the number of an entry since the tree began, and behind a slash which of its runs, if it has several.

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

const (
	// logPage is how many entries are read at a time, and logBytes about how much of them: Redis does
	// nothing else meanwhile.
	logPage  = 500
	logBytes = 1 << 20
	// entryParts are those of an entry.
	entryParts = 5
)

// Log implements store.History.
func (s *Store) Log(ctx context.Context, id job.ID, after string, limit int) ([]job.Entry, error) {
	return s.readLog(ctx, id, after, limit, false)
}

// LogBack implements store.History.
func (s *Store) LogBack(ctx context.Context, id job.ID, before string, limit int) ([]job.Entry, error) {
	return s.readLog(ctx, id, before, limit, true)
}

// readLog returns the entries next to a position: those behind it, or if back those before it.
func (s *Store) readLog(ctx context.Context, id job.ID, at string, limit int, back bool) ([]job.Entry, error) {
	from, run, err := position(at)
	if err == nil {
		err = checkLimit(limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log of job %s: %w", id, err)
	}
	step := int64(1)
	if back {
		step = -1
	}
	next := at
	switch {
	case run >= 0: // of this entry, some runs are known
		next = strconv.FormatInt(from, 10)
	case at != "":
		next = strconv.FormatInt(from+step, 10)
	}
	out := make([]job.Entry, 0, min(limit, logPage))
	for all := false; !all && len(out) < limit; {
		var number int64
		var entries []string
		number, entries, all, err = s.logPart(ctx, id, next, limit-len(out)+1, back)
		if err != nil {
			return nil, err
		}
		for _, text := range entries {
			if len(out) >= limit { // one may have been many
				break
			}
			some, err := s.logEntry(id.Tree(), number, text)
			if err != nil {
				return nil, fmt.Errorf("reading the log of job %s: %w", id, err)
			}
			if number == from && run >= 0 {
				some = slices.DeleteFunc(some, func(e job.Entry) bool {
					_, n, _ := position(e.Position)
					return back && n >= run || !back && n <= run
				})
			}
			if back {
				slices.Reverse(some)
			}
			out = append(out, some...)
			number += step
		}
		next = strconv.FormatInt(number, 10)
	}
	return out[:min(len(out), limit)], nil
}

// checkLimit refuses numbers of entries of which there can be none.
func checkLimit(limit int) error {
	if limit < 0 {
		return fmt.Errorf("%w: %d entries: use 0 or more", job.ErrValue, limit)
	}
	return nil
}

// LogTrimmed implements store.History.
func (s *Store) LogTrimmed(ctx context.Context, id job.ID) (job.Trimmed, error) {
	t := job.Trimmed{Tree: id.Tree()}
	gone, first, _, err := s.logPart(ctx, id, "", 1, false)
	if err != nil || len(first) == 0 {
		return t, err
	}
	all, err := s.logEntry(id.Tree(), gone, first[0])
	if err != nil {
		return t, fmt.Errorf("reading the log of job %s: %w", id, err)
	}
	t.Entries = gone
	if len(all) > 0 {
		t.Since = all[0].At
	}
	return t, nil
}

// logPart returns some entries of a log, from the one with a number on or from its beginning, or if back its end;
// the number of the first of them, and whether they are all that is left.
func (s *Store) logPart(ctx context.Context, id job.ID, from string, most int, back bool) (int64, []string, bool, error) {
	reply, err := s.run(ctx, scriptLog, s.keys.dueOf(id), string(id.Tree()), from, flag(back), most, logBytes)
	if err != nil {
		return 0, nil, false, err
	}
	var d decoder
	l := d.list(reply)
	number, entries, all := d.int(d.at(l, 0)), d.list(d.at(l, 1)), d.int(d.at(l, 2)) == 1
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = d.str(e)
	}
	return number, texts, all, d.err
}

// position splits a position: the number of an entry, and which of its runs, -1 for one that has not several.
func position(text string) (entry int64, run int, err error) {
	if text == "" {
		return 0, -1, nil
	}
	number, nth, several := strings.Cut(text, "/")
	run = -1
	entry, err = strconv.ParseInt(number, 10, 64)
	if several && err == nil {
		run, err = strconv.Atoi(nth)
	}
	if err != nil || entry < 0 || several && run < 0 {
		return 0, -1, fmt.Errorf("%w: %.80q is no position of a log: use that of an entry that was read", job.ErrValue, text)
	}
	return entry, run, nil
}

// logEntry decodes an entry of the list, which is one of the log or, of several runs, some.
func (s *Store) logEntry(tree job.ID, number int64, stored string) ([]job.Entry, error) {
	parts := strings.SplitN(stored, packed, entryParts)
	if len(parts) != entryParts {
		return nil, fmt.Errorf("entry %d is malformed: %.80q", number, stored)
	}
	ms, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("entry %d is malformed: %w", number, err)
	}
	e := job.Entry{Position: strconv.FormatInt(number, 10), At: time.UnixMilli(ms).UTC(), Job: nth(tree, parts[1])}
	sent, err := movements(tree, parts[3])
	if err != nil {
		return nil, fmt.Errorf("entry %d is malformed: %w", number, err)
	}
	switch what, text := parts[2], parts[4]; what {
	case "n":
		err = s.note(&e, text)
	case "r":
		err = s.runEntry(&e, text, sent)
	default:
		return s.unpack(&e, strings.Fields(what), text, sent)
	}
	return []job.Entry{e}, err
}

// unpack decodes what several runs read and wrote into an entry each. Each sent that many messages, all of
// them to the one place that is given.
func (s *Store) unpack(e *job.Entry, counts []string, text string, sent []job.Movement) ([]job.Entry, error) {
	var out []job.Entry
	for i, run := range strings.Split(text, packed) {
		one := *e
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
		if err := s.runEntry(&one, run, mine); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// movements decodes where messages were sent, as moved() in log.lua tells.
func movements(tree job.ID, text string) ([]job.Movement, error) {
	if text == "" {
		return nil, nil
	}
	var out []job.Movement
	for one := range strings.SplitSeq(text, ",") {
		f := strings.Split(one, " ")
		if len(f) != 5 || len(f[1]) != 1 {
			return nil, fmt.Errorf("messages were sent to %.80q", one)
		}
		from, err := strconv.ParseInt(f[3], 10, 64)
		n, err2 := strconv.Atoi(f[4])
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		out = append(out, job.Movement{Job: nth(tree, f[0]), Dir: port.Dir(f[1][0]), Port: f[2], From: from, N: n})
	}
	return out, nil
}

// nth is the job of a tree whose ID ends with a number, or without one the root.
func nth(tree job.ID, number string) job.ID {
	n, _ := strconv.Atoi(number) // the root has none
	return tree.Nth(n)
}

// note decodes what a worker logged.
func (s *Store) note(e *job.Entry, text string) error {
	var keys json.RawMessage
	stored := s.secrets.visible(s.secrets.place(job.KindLog, e.Job, ""), json.RawMessage(text))
	if e.Note, keys = port.Split(stored); keys != nil {
		return port.Decode(keys, &e.Context)
	}
	return nil
}

// runEntry decodes what a run read and wrote.
func (s *Store) runEntry(e *job.Entry, text string, sent []job.Movement) error {
	plain, err := s.secrets.show(s.secrets.place(job.KindLog, e.Job, ""), []byte(text))
	if err != nil {
		return s.note(e, text) // people without keys see at least that there was a run
	}
	e.Run = &job.RunEntry{Sent: sent}
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

// Logs implements store.Inspector.
func (s *Store) Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error) {
	return lastOf(ctx, s, id, limit, func(e job.Entry) (job.LogEntry, bool) {
		return job.LogEntry{At: e.At, Job: id, Entry: e.Note, Context: e.Context}, e.Run == nil && e.Job == id
	})
}

// Runs implements store.History.
func (s *Store) Runs(ctx context.Context, id job.ID, limit int) ([]job.RunEntry, error) {
	return lastOf(ctx, s, id, limit, func(e job.Entry) (run job.RunEntry, is bool) {
		if is = e.Run != nil && (id.IsRoot() || e.Job == id); is {
			run = *e.Run
		}
		return run, is
	})
}

// lastOf returns the last entries of a log, up to limit of those that which picks, oldest first.
func lastOf[T any](ctx context.Context, s *Store, id job.ID, limit int, which func(job.Entry) (one T, is bool)) ([]T, error) {
	if err := checkLimit(limit); err != nil {
		return nil, fmt.Errorf("reading the log of job %s: %w", id, err)
	}
	if limit == 0 {
		return nil, nil
	}
	var out []T
	err := s.last(ctx, id, func(e job.Entry) bool {
		if one, is := which(e); is {
			out = append(out, one)
		}
		return len(out) < limit
	})
	slices.Reverse(out)
	return out, err
}
