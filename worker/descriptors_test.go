package worker_test

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// descriptors limits how many files and connections this process may open: those that are open stay so.
func descriptors(most uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = min(most, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

const (
	allDescriptors = math.MaxUint64
	noDescriptors  = 3 // which are taken: by input, output and errors
)

// A process whose connections are cut may not open any others for a while. It does not end,
// nothing is lost or done twice, and when it may again work goes on.
func TestNoMoreDescriptors(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	b := newBenchOf(t, r.URL(), 1)
	p := b.process("a")
	s := b.tell(20 * time.Millisecond)
	b.Until("some runs are committed", func() bool { return s.begun(5) })
	p.tell("poor")
	p.says("poor: <nil>")
	for _, kind := range []string{"normal", "pubsub"} {
		b.Check(r.Client(t).Do(b.Ctx, "CLIENT", "KILL", "TYPE", kind).Err())
	}
	p.says("too many open files")
	before := s.known()
	time.Sleep(3 * time.Second) // longer than leases, and than the driver is patient
	if after := s.known(); after != before {
		t.Errorf("%d runs were committed, and later %d: it has connections", before, after)
	}
	if s.over() {
		t.Error("the story was over too early to mean anything")
	}
	p.tell("rich")
	p.says("rich: <nil>")
	s.check()
	p.tell("stop")
	p.says("stopped")
	if strings.Contains(p.said(), "panic") {
		t.Errorf("the process said:\n%s", p.said())
	}
}

// known waits until Redis tells how many runs of the story have been committed.
func (s *story) known() (n int64) {
	s.bench.Helper()
	s.bench.Until("Redis tells", func() (ok bool) {
		n, ok = s.steps()
		return ok
	})
	return n
}
