package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// logged has the log of a job with a run in progress get that many notes, 500 with each commit.
func logged(e *env, snap *store.Snapshot, n int) {
	e.Helper()
	for from := 0; from < n; from += 500 {
		d := delta(snap, store.Checkpoint)
		d.Next, d.Lease = snap.Token+"x", time.Hour
		for k := range min(500, n-from) {
			d.Log = append(d.Log, fmt.Sprint(from+k))
		}
		e.commit(d)
		snap.Token = d.Next
	}
}

// A log says how many of its first entries are gone, and since when it is whole; and a reader that fell behind, how many it missed.
func TestPoint12LogSaysWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	root := e.single()
	h := client.New(e.store).At(root)
	r, err := h.OpenLog(e.Context(), true)
	e.Check(err)
	snap := e.begin(root)
	logged(e, snap, 1000)
	all, err := r.Trimmed(e.Context())
	e.Check(err)
	e.equal("trimmed of a short log", len(all), 0)
	first, err := r.Next(e.Context())
	e.Check(err)
	e.equal("read", len(first), 1000)
	logged(e, snap, 12_000)

	all, err = r.Trimmed(e.Context())
	e.Check(err)
	left, err := e.store.Log(e.Context(), root, "", 1)
	e.Check(err)
	e.equal("logs", len(all), 1)
	gone := all[0].Entries
	e.equal("tree", all[0].Tree, root)
	e.equal("since", all[0].Since, left[0].At)
	e.equal("position of the first that is left", left[0].Position, fmt.Sprint(gone))
	e.equal("entries that are gone, and left", gone+e.Redis.LLen(e.Context(), e.logKey(root)).Val(), int64(13_000))
	rest, err := r.Next(e.Context())
	e.Check(err)
	e.equal("missed, and read", int(r.Missed())+len(rest), 12_000)
	e.equal("missed", r.Missed(), gone-1000)
	_, err = r.Next(e.Context())
	e.Check(err)
	e.equal("missed again", r.Missed(), int64(0))

	_, err = h.Trace(e.Context(), port.Input, "in", 0)
	if e.fails(err, job.ErrNotFound); !strings.Contains(err.Error(), fmt.Sprintf("its first %d entries", gone)) {
		t.Errorf("what is gone of the log is not told: %v", err)
	}
}

// Who wants the last entries of a log that has grown by very many does not read all of them, and is told how many those were.
func TestLogNextLast(t *testing.T) {
	each(t, func(e *env) {
		root := e.single()
		all, err := client.New(e.store).At(root).OpenLog(e.Context(), true)
		e.Check(err)
		r, err := client.New(e.store).At(root).OpenLog(e.Context(), true)
		e.Check(err)
		snap, total := e.begin(root), 0
		for _, n := range []int{3, 499, 0, 5000, 7, 1000} {
			logged(e, snap, n)
			total += n
			want, err := all.Next(e.Context())
			e.Check(err)
			got, err := r.NextLast(e.Context(), 20)
			e.Check(err)
			e.equal("read and missed", len(got)+int(r.Missed()), len(want))
			if n > 2000 && len(got) > 1500 || n < 500 && len(got) != len(want) {
				t.Errorf("of %d entries %d were read", n, len(got))
			}
			for i := range min(20, len(want)) {
				if a, b := want[len(want)-1-i], got[len(got)-1-i]; a.Position != b.Position {
					t.Fatalf("of %d entries number %d from the end is %s, want %s", n, i, b.Position, a.Position)
				}
			}
			e.equal("position", r.Position(), all.Position())
		}
	})
}

// Where the namespace says so, old entries of a log go as new ones come, a bounded number at a time, and the last stays.
func TestPoint12LogCappedByAge(t *testing.T) {
	t.Parallel()
	clock := redisstore.NewClock(time.UnixMilli(1e12))
	e := openBy(t, redisstore.Config{Embedded: embedded.Start, Clock: clock})
	c := e.Client
	root := e.single()
	write := func(n int) {
		e.Helper()
		for range n {
			e.Check(e.store.Write(e.Context(), root, store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: `{"step":1}`}))
		}
	}
	gone := func() int64 {
		e.Helper()
		at, err := e.store.LogTrimmed(e.Context(), root)
		e.Check(err)
		return at.Entries
	}
	write(300)
	clock.Set(clock.Now().Add(24 * time.Hour))
	write(20)
	e.equal("gone without an age", gone(), int64(0))
	r, err := c.Retention(e.Context())
	e.Check(err)
	e.equal("retention by default", r.Log, job.Forever)
	e.Check(c.SetRetention(e.Context(), job.Retention{Log: time.Hour}))
	r, err = c.Retention(e.Context())
	e.Check(err)
	e.equal("retention", r, job.Retention{Ended: job.DefaultRetention.Ended, Failed: job.DefaultRetention.Failed, Log: time.Hour})
	write(16)
	e.equal("gone at a time", gone(), int64(256))
	write(16)
	e.equal("gone in the end", gone(), int64(300))
	at, err := e.store.LogTrimmed(e.Context(), root)
	e.Check(err)
	e.equal("since", at.Since, time.UnixMilli(1e12).Add(24*time.Hour).UTC())
	clock.Set(clock.Now().Add(2 * time.Hour))
	write(16)
	left, err := e.store.Log(e.Context(), root, "", 99)
	e.Check(err)
	for _, entry := range left[min(16, len(left)):] {
		t.Errorf("entry of %s is left", entry.At)
	}
	e.Check(c.SetRetention(e.Context(), job.Retention{Log: job.Forever}))
	before := gone()
	clock.Set(clock.Now().Add(24 * time.Hour))
	write(40)
	e.equal("gone afterwards", gone(), before)
	e.fails(c.SetRetention(e.Context(), job.Retention{Log: -1}), job.ErrName)
}
