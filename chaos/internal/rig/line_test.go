package rig

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// A line whose proxy hangs gets another one, and those who use it are told.
func TestLineThatHangs(t *testing.T) {
	s, err := newSite(t.TempDir(), 1, everySec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	told, l := 0, s.lines[0]
	l.replaced = func() { told++ }
	before := l.url()
	if !l.trouble(context.Background(), toxics[0], time.Millisecond) || l.trouble(context.Background(), toxic{"bad", "{"}, time.Millisecond) {
		t.Error("a trouble is refused, or a wrong one taken")
	}
	let := make(chan struct{})
	defer close(let)
	err = l.change(func(*toxiproxy.ToxicCollection) error {
		<-let
		return nil
	})
	if !errors.Is(err, errHangs) || told != 1 || l.url() == before {
		t.Errorf("%v, told %d times, %s after %s", err, told, l.url(), before)
	}
	conn, err := net.Dial("tcp", l.now().Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply := make([]byte, 5)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(reply); err != nil || string(reply) != "+PONG" {
		t.Errorf("%q, %v", reply, err)
	}
}
