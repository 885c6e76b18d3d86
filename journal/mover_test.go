package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	code := redistest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// moving runs a mover until the returned function is called.
func moving(t testing.TB, j *journal.Journal, s journal.Store, held func() bool) (m *journal.Mover, stop func()) {
	t.Helper()
	m = &journal.Mover{Journal: j, Store: s, Held: held, Logger: silent()}
	return m, enginetest.Run(t, m.Run).Stop
}

func register(t testing.TB, s *redisstore.Store, infos ...job.TypeInfo) {
	t.Helper()
	enginetest.Check(t, s.Register(t.Context(), infos))
}

func TestM15PayloadsBecomeJobsWithTheIDsThatWereAnswered(t *testing.T) {
	t.Parallel()
	s := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	register(t, s, job.TypeInfo{Type: "acme-mail", Queue: "post", Ports: []port.Spec{{Dir: port.Input, Name: "other"}, {Dir: port.Input, Name: "in"}, {Dir: port.Output, Name: "out"}}})
	j := open(t, journal.Config{Dir: t.TempDir()})
	moving(t, j, s, nil)
	ids := append(write(t, j, "acme-mail", "l1\n{\"a|b\": \"ü\"}\n"), write(t, j, "nobody-has-it", "x")...)
	want := []string{`"l1"`, `"{\"a|b\": \"ü\"}"`, `"x"`}
	client := client.New(s)
	for i, id := range ids {
		h := client.At(job.ID(id))
		var info *job.Info
		enginetest.Until(t, "job "+id+" is not there", func() (there bool) {
			var err error
			info, err = h.Info(t.Context())
			return err == nil
		})
		pending, err := h.Messages(t.Context(), port.Input, "in", 5)
		enginetest.Check(t, err)
		if len(pending) != 1 || string(pending[0].Data) != want[i] || info.Status != job.Queued {
			t.Errorf("job %d is %s, with the messages %s, want %s", i, info.Status, pending, want[i])
		}
		in, _ := info.Port(port.Input, "in")
		if queue := map[bool]string{true: "post", false: "default"}[i < 2]; !in.Closed || info.Queue != queue {
			t.Errorf("job %d: queue %s, port in closed: %v", i, info.Queue, in.Closed)
		}
	}
}

// A port that takes objects gets them, not strings.
func TestMessage(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`a"b`, "", `"a\"b"`},
		{`{"a":1}`, "", `"{\"a\":1}"`},
		{`{"a":1}`, "string", `"{\"a\":1}"`},
		{`<b>`, "", `"<b>"`},
		{` {"a":1} `, "object", `{"a":1}`},
		{`7`, "number", `7`},
		{`no json`, "object", `"no json"`},
	} {
		if got, err := journal.Message([]byte(c[0]), c[1]); err != nil || string(got) != c[2] || !json.Valid(got) {
			t.Errorf("%q for a port of kind %q: %s, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
}

// taker reads its payload.
type taker struct{ In port.In[string] }

// JobType implements job.TypeNamer.
func (*taker) JobType() string { return "t" }

// Run implements worker.Worker.
func (w *taker) Run(context.Context, *worker.Run) error {
	for _, err := range w.In.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// What was moved comes again with the position lost, and creates nothing: not even of jobs that are gone.
func TestEachIsMovedOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := enginetest.Open(t, redisstore.Config{URL: url, Namespace: redistest.Namespace(t)})
		client := client.New(s)
		dir := t.TempDir()
		enginetest.Check(t, client.SetRetention(t.Context(), job.Retention{Ended: time.Millisecond}))
		j := open(t, journal.Config{Dir: dir})
		m, stop := moving(t, j, s, nil)
		var ids []string
		for i := range 6 {
			ids = append(ids, write(t, j, "t", strings.Repeat(fmt.Sprintf("p%d\n", i), 50))...)
		}
		enginetest.Until(t, "not all are moved", func() bool { return m.Moved() == int64(len(ids)) })
		stop()
		enginetest.Check(t, j.Close())
		engine, err := worker.New(worker.Config{Store: s, Workers: []worker.Worker{&taker{}}, Logger: silent()})
		enginetest.Check(t, err)
		if err := engine.RunWhile(t.Context(), func(ctx context.Context) error {
			enginetest.Until(t, "jobs that are past their retention are there", func() bool {
				n, err := client.Count(ctx, job.Filter{})
				return err == nil && n == 0
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		enginetest.Check(t, os.Remove(filepath.Join(dir, "position")))
		j = open(t, journal.Config{Dir: dir})
		m, _ = moving(t, j, s, nil)
		write(t, j, "t", "new")
		enginetest.Until(t, "they are not looked at again", func() bool { return m.Moved() == int64(len(ids))+1 })
		n, err := client.Count(t.Context(), job.Filter{})
		if err != nil || n != 1 {
			t.Errorf("%d jobs, want the new one alone: %v", n, err)
		}
	})
}

// lossy is a store of which every third call fails, after it was carried out or before.
type lossy struct {
	*redisstore.Store
	n atomic.Int64
}

func (l *lossy) CreateArrivals(ctx context.Context, epoch string, all []store.Arrival) error {
	switch n := l.n.Add(1); n % 3 {
	case 1:
		return errors.New("it is not carried out")
	case 2: // a part of it
		return errors.Join(l.Store.CreateArrivals(ctx, epoch, all[:len(all)/2]), errors.New("the answer is lost"))
	}
	return l.Store.CreateArrivals(ctx, epoch, all)
}

func TestMovesAreRepeated(t *testing.T) {
	t.Parallel()
	s := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	j := open(t, journal.Config{Dir: t.TempDir()})
	l := &lossy{Store: s}
	m, _ := moving(t, j, l, nil)
	for i := range 10 {
		write(t, j, "t", strings.Repeat(fmt.Sprintf("p%d\n", i), 20))
	}
	enginetest.Until(t, "not all are moved", func() bool { return m.Moved() == 200 })
	if n, err := client.New(s).Count(t.Context(), job.Filter{}); n != 200 || err != nil || l.n.Load() < 3 {
		t.Errorf("%d jobs after %d calls: %v", n, l.n.Load(), err)
	}
}

// RunWhile Redis is dead payloads are accepted; when it is back they are moved.
func TestRedisDead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := enginetest.Open(t, redisstore.Config{URL: server.URL(), Namespace: "dead"})
	j := open(t, journal.Config{Dir: t.TempDir(), Segment: 8 << 10, Limit: 64 << 10})
	m, _ := moving(t, j, s, nil)
	write(t, j, "t", "a\nb\n")
	enginetest.Until(t, "not moved", func() bool { return m.Moved() == 2 })
	server.Kill()
	n := 2
	var refused error
	for refused == nil {
		var r *journal.Receipt
		if r, refused = j.Write("t", []byte(strings.Repeat("x", 1000)+"\ny\n")); refused == nil {
			enginetest.Check(t, r.Wait(t.Context()))
			n += 2
		}
	}
	if !errors.Is(refused, journal.ErrFull) || n < 50 {
		t.Errorf("after %d: %v", n, refused)
	}
	server.Restart()
	enginetest.Until(t, "not all are moved", func() bool { return m.Moved() == int64(n) })
	if jobs, err := client.New(s).Count(t.Context(), job.Filter{}); jobs != n || err != nil {
		t.Errorf("%d jobs, want %d: %v", jobs, n, err)
	}
	write(t, j, "t", "there is room again")
}

func TestM24SystemIDs(t *testing.T) {
	t.Parallel()
	s := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	ctx := t.Context()
	const ttl = 500 * time.Millisecond
	a, err := s.ReserveSystem(ctx, "one", ttl)
	if err != nil || !a.Held() {
		t.Fatalf("%v", err)
	}
	if _, err := s.ReserveSystem(ctx, "one", ttl); !errors.Is(err, job.ErrLocked) {
		t.Errorf("reserved twice: %v", err)
	}
	other, err := s.ReserveSystem(ctx, "two", ttl)
	if err != nil || other.ID() == a.ID() {
		t.Errorf("a distinct one: %v", err)
	}
	for began := time.Now(); time.Since(began) < 2*ttl; time.Sleep(ttl / 10) { // renewing keeps it
		enginetest.Check(t, a.Renew(ctx))
	}
	if _, err := s.ReserveSystem(ctx, "one", ttl); !errors.Is(err, job.ErrLocked) {
		t.Errorf("it was renewed: %v", err)
	}
	var taken *redisstore.System
	enginetest.Until(t, "the ID that is not renewed does not expire", func() (is bool) {
		taken, err = s.ReserveSystem(ctx, "one", time.Minute)
		return err == nil
	})
	if a.Held() {
		t.Error("who did not renew it believes to have it")
	}
	if err := a.Renew(ctx); !errors.Is(err, job.ErrLocked) || a.Held() {
		t.Errorf("renewed though another has it: %v", err)
	}
	if err := a.Release(ctx); err != nil || !taken.Held() {
		t.Errorf("released though another has it: %v", err)
	}
	if _, err := s.ReserveSystem(ctx, "one", ttl); !errors.Is(err, job.ErrLocked) {
		t.Errorf("who lost it released it: %v", err)
	}
	if err := taken.Release(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.ReserveSystem(ctx, "one", ttl); err != nil {
		t.Errorf("it was released: %v", err)
	}
}

// A process that lost its system ID moves nothing.
func TestM24WithoutItsSystemIDNothingIsClaimed(t *testing.T) {
	t.Parallel()
	s := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	j := open(t, journal.Config{Dir: t.TempDir()})
	y, err := s.ReserveSystem(t.Context(), "one", time.Minute)
	enginetest.Check(t, err)
	var calls atomic.Int64
	m, _ := moving(t, j, s, func() bool { calls.Add(1); return y.Held() })
	write(t, j, "t", "a")
	enginetest.Until(t, "not moved", func() bool { return m.Moved() == 1 })
	enginetest.Check(t, y.Release(t.Context()))
	write(t, j, "t", "b")
	before := calls.Load()
	enginetest.Until(t, "nobody asked", func() bool { return calls.Load() > before+2 })
	if n, err := client.New(s).Count(t.Context(), job.Filter{}); n != 1 || err != nil || m.Moved() != 1 {
		t.Errorf("%d jobs, %v", n, err)
	}
}
