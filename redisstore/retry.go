package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Retry implements store.Attempts.
func (s *Store) Retry(ctx context.Context, id job.ID, r store.Retry) error {
	args, err := s.secrets.hide(s.secrets.place(job.KindArgs, id, ""), r.Args)
	if err != nil {
		return err
	}
	entry, err := s.actNote(id, "retried", r.String())
	if err != nil {
		return err
	}
	at, delay, far, seen, priority := "", "", "", "", ""
	switch {
	case r.Later && !r.At.IsZero():
		at = milliText(r.At)
	case r.Later:
		delay = strconv.FormatInt(r.Delay.Milliseconds(), 10)
	}
	if r.Repeat != nil {
		far, seen = r.Repeat.Progress(), strconv.FormatInt(r.Version, 10)+" "+milliText(r.Ran)
	}
	if r.Priority != nil {
		priority = strconv.Itoa(*r.Priority)
	}
	l, err := s.acted(ctx, scriptRetry, id, "", string(id), rand.Text(), flag(r.Running), at, delay, far, seen,
		args, max(r.TypeVersion, 1), priority, r.Name, entry)
	if err != nil {
		return err
	}
	var d decoder
	if when := d.str(d.at(l, 2)); when != "" {
		s.broker.Due(ctx, id.Shard(s.keys.shards), d.int(when))
	}
	return d.err
}

// milliText is a time as scripts have it; that of none is empty.
func milliText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// Fail implements store.Attempts.
func (s *Store) Fail(ctx context.Context, id job.ID, f store.ByHand) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	text := f.String()
	reason, more, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(more) != "" {
		reason += " …" // weir show has all of it
	}
	d, err := s.secrets.hideDelta(store.Delta{
		Job: id, Reason: reason, Failure: &job.Failure{At: now, Error: text},
		Entry: (&job.RunEntry{By: f.By, Error: store.ByHand{Reason: f.Reason}.String()}).Encode(),
	})
	if err != nil {
		return err
	}
	failure, err := json.Marshal(d.Failure)
	if err != nil {
		return err
	}
	return s.act(ctx, scriptFail, id, "", string(id), rand.Text(), d.Reason, failure, d.Entry)
}
