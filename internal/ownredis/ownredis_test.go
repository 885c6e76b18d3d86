package ownredis

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin starts a server whose data are in a directory.
func begin(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), dir, false)
	check(t, err)
	t.Cleanup(s.Stop)
	return s
}

// A server that ends by itself ends what is guarded by it; one that is stopped does not.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := begin(t, t.TempDir())
	ctx, release := s.Guard(t.Context())
	defer release()
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.URL, "redis://"), MaxRetries: -1})
	defer client.Close()
	_ = client.ShutdownNoSave(t.Context()).Err() // it answers by ending
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("nobody says that it has ended")
	}
	if err := context.Cause(ctx); !errors.Is(err, ErrDied) {
		t.Errorf("%v", err)
	}

	s = begin(t, t.TempDir())
	ctx, release = s.Guard(t.Context())
	if s.Stop(); ctx.Err() != nil {
		t.Errorf("stopped: %v", context.Cause(ctx))
	}
	release()
}

// What has a directory that another one may have in use refuses it, and says why: a server that does not answer, a lock, rights.
func TestDirectory(t *testing.T) {
	t.Parallel()
	refused := func(dir, why string) {
		t.Helper()
		s, err := Start(t.Context(), dir, false)
		if own := (*DirError)(nil); !errors.As(err, &own) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
		if s != nil {
			s.Stop()
		}
	}
	dir := t.TempDir()
	begin(t, dir)
	refused(dir, "another weir works with the data")

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(file, "not a directory")
	odd := t.TempDir()
	if err := os.Mkdir(filepath.Join(odd, dirLock), 0o700); err != nil {
		t.Fatal(err)
	}
	refused(odd, "the data cannot be in "+odd)

	stalled := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(filepath.Join(stalled, redisAddress), []byte(l.Addr().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(stalled, "does not answer")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	begin(t, stalled) // nobody is there any more
}

// A redis-server that reads its data is waited for, however long that takes; one that refuses us is not.
func TestWaitWhileRedisLoads(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	proxy.Answer("LOADING Redis is loading the dataset in memory")
	answers := make(chan error, 1)
	go func() { answers <- answering(t.Context(), proxy.Addr()) }()
	select {
	case err := <-answers:
		t.Fatalf("while it loads: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	proxy.Answer("")
	if err := <-answers; err != nil {
		t.Error(err)
	}
	proxy.Answer("LOADING Redis is loading the dataset in memory")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := answering(ctx, proxy.Addr()); err == nil || !strings.Contains(err.Error(), "LOADING") && ctx.Err() == nil {
		t.Errorf("interrupted: %v", err)
	}
}

// A server without data that are kept, and its directory, go when the next program starts, if theirs was killed.
func TestLeftoversOfTheKilledGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	works := begin(t, "")
	dir := filepath.Join(os.TempDir(), passingDir+"left")
	check(t, os.Mkdir(dir, 0o700))
	left, err := runRedis(t.Context(), "redis-server", dir, func() {}, "--appendonly", "no")
	check(t, err)
	t.Cleanup(left.Stop)
	guarded, release := left.Guard(t.Context())
	defer release()
	begin(t, "")
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a directory that was made just now: %v", err)
	}
	all, err := filepath.Glob(filepath.Join(os.TempDir(), passingDir+"*"))
	check(t, err)
	for _, dir := range all {
		check(t, os.Chtimes(dir, time.Time{}, time.Now().Add(-2*settling)))
	}
	begin(t, "")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that nobody has is there: %v", err)
	}
	select {
	case <-guarded.Done():
	case <-time.After(time.Minute):
		t.Error("its server goes on")
	}
	check(t, answering(t.Context(), strings.TrimPrefix(works.URL, "redis://")))
}
