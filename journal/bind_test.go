package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
)

// Payloads of which some may have become jobs on one Redis do not go to another one; once all have, those to come may.
func TestBind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reopen := func(j *journal.Journal) *journal.Journal {
		t.Helper()
		if j != nil {
			enginetest.Check(t, j.Close())
		}
		return open(t, journal.Config{Dir: dir})
	}
	j := reopen(nil)
	write(t, j, "t", "a\nb\n")
	j = reopen(j)
	if err := j.Bind("one", "here"); err != nil {
		t.Fatalf("payloads that went nowhere: %v", err)
	}
	j = reopen(j)
	if err := j.Bind("two", "there"); !errors.Is(err, journal.ErrOther) || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "namespace")) {
		t.Errorf("another Redis: %v", err)
	}
	for _, where := range []string{"here", "moved"} { // one may be reached at another address, too
		if err := j.Bind("one", where); err != nil {
			t.Errorf("the same Redis at %s: %v", where, err)
		}
	}
	if err := j.Bind("three", "here"); err != nil {
		t.Errorf("it lost its data: %v", err)
	}
	if err := j.Bind("one", "there"); !errors.Is(err, journal.ErrOther) {
		t.Errorf("not noted: %v", err)
	}
	token, err := j.ReadReserve(t.Context(), 10, 1e10)
	enginetest.Check(t, err)
	if _, err := j.Read(token); err != nil {
		t.Fatal(err)
	}
	enginetest.Check(t, j.Ack(token))
	j = reopen(j)
	if err := j.Bind("two", "there"); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
	write(t, j, "t", "c")
	j = reopen(j)
	if err := j.Bind("one", "here"); !errors.Is(err, journal.ErrOther) {
		t.Errorf("noted: %v", err)
	}
	enginetest.Check(t, os.Remove(filepath.Join(dir, "namespace")))
	j = reopen(j)
	if err := j.Bind("one", "here"); err != nil {
		t.Errorf("as the error says: %v", err)
	}
}

// A mover whose Redis is another one than before moves nothing, and says why.
func TestMoverStaysWithItsRedis(t *testing.T) {
	t.Parallel()
	first := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	other := enginetest.Open(t, redisstore.Config{URL: redistest.Start(t).URL(), Namespace: first.Namespace()})
	j := open(t, journal.Config{Dir: t.TempDir()})
	m, stop := moving(t, j, first, nil)
	write(t, j, "t", "a\nb\n")
	enginetest.Until(t, "not moved", func() bool { return m.Moved() == 2 })
	if p := m.Problem(); p != "" {
		t.Errorf("a problem: %s", p)
	}
	stop()
	wrong, stop := moving(t, j, other, nil)
	if err := wrong.Check(t.Context()); !errors.Is(err, journal.ErrOther) {
		t.Errorf("before it begins: %v", err)
	}
	write(t, j, "t", "c")
	enginetest.Until(t, "no problem", func() bool { return strings.Contains(wrong.Problem(), "another Redis") })
	stop()
	if n, err := client.New(other).Count(t.Context(), job.Filter{}); n != 0 || err != nil {
		t.Errorf("%d jobs on the other Redis: %v", n, err)
	}
	m, _ = moving(t, j, first, nil)
	if err := m.Check(t.Context()); err != nil {
		t.Error(err)
	}
	enginetest.Until(t, "not moved", func() bool { return m.Moved() == 1 })
	if n, err := client.New(first).Count(t.Context(), job.Filter{}); n != 3 || err != nil {
		t.Errorf("%d jobs: %v", n, err)
	}
}

// What is to be written when payloads go has its place from the beginning: a disk that they have filled does not keep them from going.
func TestRoomForWhereTheyGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	sizes := func() (all []int64) {
		for _, name := range []string{"namespace", "position"} {
			info, err := os.Stat(filepath.Join(dir, name))
			enginetest.Check(t, err)
			all = append(all, info.Size())
		}
		return all
	}
	before := sizes()
	write(t, j, "t", "a\n")
	enginetest.Check(t, j.Bind("one", "redis://"+strings.Repeat("long.", 300)))
	token, err := j.ReadReserve(t.Context(), 1, 1e10)
	enginetest.Check(t, err)
	enginetest.Check(t, j.Ack(token))
	if after := sizes(); before[0] == 0 || before[1] == 0 || !slices.Equal(before, after) {
		t.Errorf("%d bytes became %d", before, after)
	}
	if err := j.Bind("two", "redis://"+strings.Repeat("long.", 300)); err != nil {
		t.Errorf("the same address: %v", err)
	}
}
