package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestState(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			s := run.State()
			var n int
			had, err := s.Get("n", &n)
			if err != nil || had != (n > 0) {
				return fmt.Errorf("Get = %t, %w; n = %d", had, err, n)
			}
			if err := errors.Join(s.Set("n", n+1), s.Set("null", nil), s.Set("gone", 1), s.Set("big", json.RawMessage("12345678901234567890"))); err != nil {
				return err
			}
			s.Unset("gone", "never was")
			if _, err := s.Get("n", &n); err != nil { // sees its own change
				return err
			}
			many, err := s.GetMany([]string{"n", "gone", "null", "never was"})
			if err != nil || len(many) != 2 || string(many["null"]) != "null" {
				return fmt.Errorf("GetMany = %s, %w", many, err)
			}
			all, err := s.All()
			if err != nil || len(all) != 3 {
				return fmt.Errorf("All = %s, %w", all, err)
			}
			return w.Out.Write(n)
		}))
		b.Completed(h, 1)
		b.Check(h.Run(b.Ctx))
		b.Completed(h, 2)
		b.same(h, 1, 2)
		want := map[string]string{"n": "2", "null": "null", "big": "12345678901234567890"}
		if got := b.State(h); !maps.Equal(got, want) {
			b.Errorf("state = %v, want %v", got, want)
		}
	})
}

// A key that is not valid UTF-8 is refused, in a run and from outside, and nothing is stored.
func TestStateKeysAreUTF8(t *testing.T) {
	const bad = "k\xff"
	want := `the key of state "k\xff" is not valid UTF-8`
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			err := run.State().Set(bad, 1)
			if !errors.Is(err, port.ErrEncoding) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("Set = %w", err)
			}
			run.State().Unset(bad)
			return run.State().Set("kä", 1)
		}))
		b.Completed(h, 1)
		err := h.SetState(b.Ctx, map[string]any{bad: 1})
		if !errors.Is(err, port.ErrEncoding) || !strings.Contains(err.Error(), want) {
			b.Errorf("SetState = %v", err)
		}
		if got := b.State(h); !maps.Equal(got, map[string]string{"kä": "1"}) {
			b.Errorf("state = %v", got)
		}
	})
}

// With more keys than come with a snapshot, a run asks for those it needs.
func TestLargeState(t *testing.T) {
	each(t, func(b *bench) {
		const n = 3000
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			s := run.State()
			all, err := s.All()
			if err != nil {
				return err
			}
			if len(all) == 0 {
				for i := range n {
					if err := s.Set(strconv.Itoa(i), i); err != nil {
						return err
					}
				}
				return nil
			}
			var v int
			s.Unset("0", "1")
			if err := s.Set("2", -2); err != nil {
				return err
			}
			if ok, err := s.Get("0", &v); ok || err != nil {
				return fmt.Errorf("Get of an unset key = %t, %w", ok, err)
			}
			many, err := s.GetMany([]string{"1", "2", "2999", "3000"})
			if err != nil || len(many) != 2 || string(many["2"]) != "-2" || string(many["2999"]) != "2999" {
				return fmt.Errorf("GetMany = %s, %w", many, err)
			}
			if err := run.Checkpoint(); err != nil {
				return err
			}
			for i, want := range map[string]int{"2": -2, "2999": 2999} {
				if ok, err := s.Get(i, &v); !ok || err != nil || v != want {
					return fmt.Errorf("Get(%q) after Checkpoint = %d, %t, %w", i, v, ok, err)
				}
			}
			if ok, err := s.Get("1", &v); ok || err != nil {
				return fmt.Errorf("Get of a removed key after Checkpoint = %t, %w", ok, err)
			}
			all, err = s.All()
			return errors.Join(err, w.Out.Write(len(all)))
		}))
		b.Completed(h, 1)
		b.Check(h.Run(b.Ctx))
		b.Completed(h, 2)
		b.same(h, n-2)
		if got := len(b.State(h)); got != n-2 {
			b.Errorf("%d keys are stored, want %d", got, n-2)
		}
	})
}

func TestStateOfAnotherType(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
		var n int
		if err := run.State().Set("key", "text"); err != nil {
			return err
		}
		_, err := run.State().Get("key", &n)
		return errors.Join(err, run.State().Set("", 1))
	}))
	if f := b.Failure(h); !strings.Contains(f.Error, `state "key"`) {
		b.Errorf("failure = %q", f.Error)
	}
}

func TestLog(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(&Tried{*call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			if err := errors.Join(run.Log("first"), run.Log(map[string]int{"tries": run.Info().Tries})); err != nil {
				return err
			}
			log := run.Logger().With("order", 7)
			log.Debug("not kept")
			log.Warn("the bank is slow", "took", time.Second)
			if run.Info().Tries == 0 {
				return errors.New("once more")
			}
			return nil
		})})
		b.Completed(h, 1)
		logs, err := h.Logs(b.Ctx, 10)
		b.Check(err)
		got := []string{}
		for _, l := range logs {
			entry := regexp.MustCompile(`"time":"[^"]+"`).ReplaceAllString(string(l.Entry), `"time":"…"`)
			got = append(got, entry)
			if l.Job != h.ID() || l.At.IsZero() {
				b.Errorf("entry of job %s at %v", l.Job, l.At)
			}
		}
		// What the failed run logged is there, too.
		slow := `{"time":"…","level":"WARN","msg":"the bank is slow","order":7,"took":1000000000}`
		if want := []string{`"first"`, `{"tries":0}`, slow, `"first"`, `{"tries":1}`, slow}; !slices.Equal(got, want) {
			b.Errorf("log = %q, want %q", got, want)
		}
		if last, err := h.Logs(b.Ctx, 1); err != nil || len(last) != 1 || !strings.Contains(string(last[0].Entry), `"the bank is slow"`) {
			b.Errorf("the last entry = %v, %v", last, err)
		}
	})
}

// The key of an effect stays the same until its step is committed.
func TestIdempotencyKey(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		keys := make(chan [3]string, 10)
		h := b.single(&Tried{*call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			key := func() string { return run.IdempotencyKey("mail") }
			seen := [3]string{key(), run.IdempotencyKey("fax")}
			if run.Info().Tries < 2 {
				seen[2] = key()
				keys <- seen
				return errors.New("again")
			}
			if err := run.Checkpoint(); err != nil {
				return err
			}
			seen[2] = key()
			keys <- seen
			return nil
		})})
		b.Completed(h, 2)
		b.Check(h.Run(b.Ctx))
		b.Reach(h, 2, statemachine.Completed, statemachine.Failed, statemachine.Scheduled)
		first, second, third, later := <-keys, <-keys, <-keys, <-keys
		if first[0] == first[1] || first[0] != first[2] {
			b.Errorf("keys of the first run: %v", first)
		}
		if second != first || third[0] != first[0] || third[1] != first[1] {
			b.Errorf("a failed run changes the keys: %v, %v, %v", first, second, third)
		}
		if third[2] == first[0] || later[0] == first[0] || later[0] == third[2] {
			b.Errorf("a commit does not change the key: %v, %v, %v", first, third, later)
		}
	})
}

func TestTwoJobsHaveDifferentIdempotencyKeys(t *testing.T) {
	b := onRedis(t)
	b.serve()
	w := call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		return w.More.Write(run.IdempotencyKey("mail"))
	})
	one, two := b.single(w), b.single(w)
	b.Completed(one, 1)
	b.Completed(two, 1)
	a, c := enginetest.Outs[string](b, one, "more"), enginetest.Outs[string](b, two, "more")
	if len(a) != 1 || len(c) != 1 || a[0] == c[0] || len(a[0]) != 32 {
		b.Errorf("keys %q and %q", a, c)
	}
}

func TestRunInfo(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		i := run.Info()
		p, ok := i.Port(port.Output, "out")
		if !ok || p.Wired || i.Type != "Call" || i.Queue != job.DefaultQueue || i.Status != statemachine.Running {
			return fmt.Errorf("info = %+v", i)
		}
		return w.More.Write(string(run.ID()))
	}))
	b.Completed(h, 1)
	if got := enginetest.Outs[string](b, h, "more"); !slices.Equal(got, []string{string(h.ID())}) {
		b.Errorf("ID = %q", got)
	}
}
