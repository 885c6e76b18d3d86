package bedrock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(serveURL); url != "" {
		if err := serveProcess(url, os.Getenv(serveNamespace)); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(redistest.Main(m))
}

// surface is the line protocol over TCP, on a store of its own.
type surface struct {
	*testing.T
	store *redisstore.Store
	addr  string
	asked *atomic.Int32 // commands
	stop  func()
}

// handler serves one namespace to everybody.
type handler struct {
	service *bedrock.Service
	asked   *atomic.Int32
}

// Serve implements bedrock.Handler.
func (h handler) Serve(ctx context.Context, _ string, q *bedrock.Request, send func(*bedrock.Service, *bedrock.Response)) {
	h.asked.Add(1)
	c, err := bedrock.CommandOf(q.Method)
	if err != nil {
		send(h.service, bedrock.Refused(err))
		return
	}
	send(h.service, h.service.Do(ctx, c, q))
}

// start serves a namespace of the shared Redis.
func start(t *testing.T) *surface {
	t.Helper()
	return startOn(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t), Shards: 4})
}

// startAt does so with an embedded Redis whose clock stands at a time.
func startAt(t *testing.T, now string) (*surface, *redisstore.Clock) {
	t.Helper()
	at, err := time.Parse(time.DateTime, now)
	enginetest.Check(t, err)
	clock := redisstore.NewClock(at)
	return startOn(t, redisstore.Config{Embedded: embedded.Start, Clock: clock, Shards: 2}), clock
}

func startOn(t *testing.T, cfg redisstore.Config) *surface {
	t.Helper()
	return serveOn(t, enginetest.Open(t, cfg))
}

func serveOn(t *testing.T, store *redisstore.Store) *surface {
	t.Helper()
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: store})
	enginetest.Check(t, err)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	enginetest.Check(t, err)
	asked := new(atomic.Int32)
	takes := enginetest.Run(t, leases.Run)
	serves := enginetest.Run(t, func(ctx context.Context) error {
		return bedrock.Serve(ctx, l, handler{bedrock.New(store, leases), asked})
	})
	stop := func() {
		takes.End()
		serves.End()
	}
	return &surface{T: t, store: store, addr: l.Addr().String(), asked: asked, stop: stop}
}

// client is a connection.
type client struct {
	*surface
	conn net.Conn
	r    *bufio.Reader
}

func (s *surface) dial() *client {
	s.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.Context(), "tcp", s.addr)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return &client{s, conn, bufio.NewReader(conn)}
}

// send sends a command, with its parameters as name: value.
func (c *client) send(lines ...string) {
	c.Helper()
	if _, err := c.conn.Write([]byte(strings.Join(lines, "\n") + "\n\n")); err != nil {
		c.Fatal(err)
	}
}

// read returns the next answer: its first line, and its body.
func (c *client) read() (status, body string) {
	c.Helper()
	status, body, err := c.tryRead()
	if err != nil {
		c.Fatalf("%q: %v", status, err)
	}
	return status, body
}

func (c *client) tryRead() (status, body string, err error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := c.r.ReadString('\n')
	if err != nil {
		return line, "", err
	}
	size := 0
	for {
		header, err := c.r.ReadString('\n')
		if err != nil {
			return line, "", err
		}
		header = strings.TrimRight(header, "\r\n")
		if header == "" {
			break
		}
		if n, ok := strings.CutPrefix(header, "Content-Length: "); ok {
			if size, err = strconv.Atoi(n); err != nil {
				return line, "", err
			}
		}
	}
	raw := make([]byte, size)
	_, err = io.ReadFull(c.r, raw)
	return strings.TrimRight(line, "\r\n"), string(raw), err
}

// do sends a command and returns the answer: 200 OK and a body, or what is wrong.
func (c *client) do(lines ...string) string {
	c.Helper()
	c.send(lines...)
	status, body := c.read()
	if body != "" {
		status += " " + body
	}
	return status
}

// want checks what a command is answered.
func (c *client) want(answer string, lines ...string) {
	c.Helper()
	if got := c.do(lines...); got != answer {
		c.Errorf("%q: got %s, want %s", lines, got, answer)
	}
}

// ask returns what a command that succeeds is answered.
func (c *client) ask(lines ...string) map[string]any {
	c.Helper()
	c.send(lines...)
	status, body := c.read()
	out := map[string]any{}
	if status != "200 OK" {
		c.Fatalf("%q: %s", lines, status)
	}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &out); err != nil {
			c.Fatalf("%q: %s: %v", lines, body, err)
		}
	}
	return out
}

// state checks that a job has a state, and returns what else is told of it.
func (c *client) state(number int, state string) map[string]any {
	c.Helper()
	out := c.ask("QueryJob", "jobID: "+strconv.Itoa(number))
	if out["state"] != state {
		c.Errorf("job %d: %v, want %s", number, out, state)
	}
	return out
}

// eventually waits until a command is answered so.
func (c *client) eventually(answer string, lines ...string) {
	c.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := c.do(lines...)
		if got == answer {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("%q: got %s, want %s", lines, got, answer)
		}
	}
}

func jobID(n int) string { return fmt.Sprintf("jobID: %d", n) }
