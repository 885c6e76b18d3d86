// Package redistest gives tests real Redis servers: a private one (Start), a
// cluster (StartCluster), an in-process miniredis (StartMini), instances shared
// by a whole test binary (Each, SharedRedis) and a proxy that loses replies
// (StartProxy). It needs redis-server 7 or later on PATH and a Unix system.
//
// Nothing listens outside 127.0.0.1 and nothing uses the default port, so no
// test can reach a Redis it did not start.
package redistest

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// instance is started by the first test that needs it and ended by Main.
type instance struct {
	start func() (url string, stop func(), err error)

	once sync.Once
	url  string
	stop func()
	err  error
}

var (
	sharedRedis   = &instance{start: startSharedRedis}
	sharedCluster = &instance{start: startSharedCluster}

	inMain     atomic.Bool
	namespaces atomic.Uint64
)

// Main runs the tests and then ends the shared instances. A package that uses Each or SharedRedis needs
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
func Main(m *testing.M) int {
	inMain.Store(true)
	defer func() {
		for _, i := range []*instance{sharedRedis, sharedCluster} {
			if i.stop != nil {
				i.stop()
			}
		}
	}()
	return m.Run()
}

// Each runs fn as the subtests "redis", "cluster" and "miniredis". Each gets the URL of
// an instance; the first two are shared by all tests of the binary: keep to a Namespace
// and never flush. fn may call t.Parallel.
func Each(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { fn(t, sharedRedis.get(t)) })
	t.Run("cluster", func(t *testing.T) { fn(t, sharedCluster.get(t)) })
	t.Run("miniredis", func(t *testing.T) { fn(t, StartMini(t).URL()) })
}

// SharedRedis returns the URL of the "redis" instance of Each.
func SharedRedis(t testing.TB) string {
	t.Helper()
	return sharedRedis.get(t)
}

// Namespace returns a short name matching ^[a-z0-9]+$ that no other call
// returns, and logs it.
func Namespace(t testing.TB) string {
	t.Helper()
	// The counter makes it unique in this process, the fixed-length random
	// tail across processes.
	tail := strings.ToLower(rand.Text()[:6])
	ns := "t" + strconv.FormatUint(namespaces.Add(1), 36) + tail
	t.Logf("namespace %s", ns)
	return ns
}

func (i *instance) get(t testing.TB) string {
	t.Helper()
	if !inMain.Load() {
		t.Fatal("shared Redis instances need a TestMain that calls redistest.Main")
	}
	i.once.Do(func() { i.url, i.stop, i.err = i.start() })
	if i.err != nil {
		t.Fatal(i.err)
	}
	return i.url
}

func startSharedRedis() (string, func(), error) {
	dir, err := sharedDir()
	if err != nil {
		return "", nil, err
	}
	s, err := launch(dir, false, nil)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return s.URL(), func() { s.Kill(); _ = os.RemoveAll(dir) }, nil
}

func startSharedCluster() (string, func(), error) {
	dir, err := sharedDir()
	if err != nil {
		return "", nil, err
	}
	c, err := launchCluster(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return c.URL(), func() { c.kill(); _ = os.RemoveAll(dir) }, nil
}

// sharedDir is not a t.TempDir: it outlives the test that starts the instance.
func sharedDir() (string, error) {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return "", fmt.Errorf("creating server directory: %w", err)
	}
	return dir, nil
}
