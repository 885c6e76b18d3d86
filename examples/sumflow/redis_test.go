package main

import (
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/weirworks/weir/redisstore"
)

// redis starts a server on a free port and returns its URL.
func redis(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = l.Close()
	server := exec.Command("redis-server", "--port", port, "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for range 500 {
		store, err := redisstore.Open(t.Context(), redisstore.Config{URL: "redis://" + address})
		if err == nil {
			_ = store.Close()
			return "redis://" + address
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("redis-server does not answer within ten seconds")
	return ""
}
