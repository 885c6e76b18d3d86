//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	xterm "golang.org/x/term"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// session is a weir that runs in a terminal of its own.
type session struct {
	t      *testing.T
	cmd    *exec.Cmd
	pty    *os.File
	tty    *os.File
	before *xterm.State

	mu   sync.Mutex
	out  bytes.Buffer
	read chan struct{} // closed when there is nothing more to read
}

// openTerminal runs weir in a terminal of 80 by 24.
func openTerminal(t *testing.T, args ...string) *session {
	t.Helper()
	master, tty, err := pty.Open()
	enginetest.Check(t, err)
	x := &session{t: t, cmd: exec.Command("weir", args...), pty: master, tty: tty, read: make(chan struct{})}
	enginetest.Check(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}))
	if x.before, err = xterm.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR=1")
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	enginetest.Check(t, x.cmd.Start())
	go x.listen()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill() // if it still runs, the test has failed
		_ = master.Close()
		_ = tty.Close()
		<-x.read
	})
	return x
}

func (x *session) listen() {
	defer close(x.read)
	buf := make([]byte, 4096)
	for {
		n, err := x.pty.Read(buf)
		x.mu.Lock()
		x.out.Write(buf[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *session) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// redraw is what makes the view draw the whole screen anew.
const redraw = "\x0c"

func (x *session) press(keys string) {
	x.t.Helper()
	if _, err := x.pty.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// escapes are the sequences that move the cursor and so on.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?>=]*\$?[a-zA-Z]|\][^\x07]*\x07|[=>78])`)

// sees waits until the words are on the screen, one behind the other.
func (x *session) sees(words string) {
	x.t.Helper()
	want := regexp.MustCompile(`(?s)` + strings.ReplaceAll(regexp.QuoteMeta(words), " ", `\s*`))
	from := len(x.text())
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		x.press(redraw)
		if screen := escapes.ReplaceAllString(x.text()[from:], ""); want.MatchString(screen) {
			return
		} else if time.Since(began) > 30*time.Second {
			x.t.Fatalf("%q does not appear; there came:\n%s", words, screen[max(0, len(screen)-4000):])
		}
	}
}

// ends waits for the end of the program, which leaves the terminal as it was.
func (x *session) ends() {
	x.t.Helper()
	x.exits()
	after, err := xterm.GetState(int(x.tty.Fd()))
	if err != nil || !reflect.DeepEqual(x.before, after) {
		x.t.Errorf("the terminal was %v and is %v, %v", x.before, after, err)
	}
	_ = x.tty.Close()
	<-x.read // all that was written
	text := x.text()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1002h": "\x1b[?1002l"} {
		if i, j := strings.LastIndex(text, on), strings.LastIndex(text, off); i < 0 || j < i {
			x.t.Errorf("%q was sent at %d, %q at %d", on, i, off, j)
		}
	}
}

func (x *session) exits() {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			x.t.Errorf("it ended with %v; there came:\n%s", err, x.text())
		}
	case <-time.After(time.Minute):
		x.t.Fatal("it does not end")
	}
}

// startResize runs a Redis with a job that has the alias album.
func startResize(t *testing.T) (*redistest.Server, *client.Handle) {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes")
	store := enginetest.Open(t, redisstore.Config{URL: server.URL()})
	h, err := client.New(store).Start(t.Context(), job.Single(&resize{Width: 64}, ""), job.Alias("album"))
	enginetest.Check(t, err)
	return server, h
}

// TestTop: weir top shows a job, sends it a message, and leaves the terminal as it was.
func TestTop(t *testing.T) {
	t.Parallel()
	server, h := startResize(t)
	x := openTerminal(t, "top", "--redis", server.URL())
	x.sees("1 job")
	x.press("\r")
	x.sees("Resize, 1 job")
	x.press("s")
	x.sees("send to Resize.in:")
	x.press(`{"file": "a.png"`)
	x.press("\r")
	x.sees("this is not valid JSON")
	x.press("}\r")
	x.sees("sent to Resize.in")
	got, err := h.Messages(t.Context(), port.Input, "in", 2)
	if err != nil || len(got) != 1 || string(got[0].Data) != `{"file":"a.png"}` || got[0].Context[port.ContextBy] != actor {
		t.Errorf("the port has %s, %v", got, err)
	}
	x.press("\t")
	x.sees("← in 1 1")
	x.press("3") // the queues
	x.sees("default unserved")
	x.press(":pause default\r")
	x.sees("pause queue default?")
	x.press("y")
	x.sees("queue default is paused")
	x.press("2") // the picture
	x.sees("Resize")
	x.press("\x1b[<0;4;3M\x1b[<0;4;3m") // a click on the name of the first view
	x.sees("JOB TYPE")
	x.press("q")
	x.ends()
}

// TestTopWithoutRedis: the picture stays while Redis is away, and moves on when it is back.
func TestTopWithoutRedis(t *testing.T) {
	t.Parallel()
	server, h := startResize(t)
	x := openTerminal(t, "top", "album", "--redis", server.URL(), "--interval", "100ms")
	x.press("\t")
	x.sees("← in 0 0")
	server.Kill()
	x.sees("stale since")
	x.sees("cannot reach Redis")
	x.sees("← in 0 0")
	x.press("R")
	x.sees("run Resize?")
	x.press("y")
	x.sees("cannot reach Redis")
	server.Restart()
	enginetest.Check(t, h.Write(context.WithoutCancel(t.Context()), "in", "a.png"))
	x.sees("weir top redis://")
	x.sees("← in 1 1")
	server.Pause()
	x.sees("stale since")
	server.Resume()
	x.sees("weir top redis://")
	server.Kill()
	x.sees("stale since")
	x.press("\x03") // Ctrl-C
	x.ends()
}

// TestTopServer: through a server all is shown to a token that may only read, and what it may not do is said in the server's words.
func TestTopServer(t *testing.T) {
	t.Parallel()
	redis, h := startResize(t)
	address, store := behind(t, redis.URL(), func(c *api.Config) { c.Tokens = true })
	token, _, err := store.CreateToken(t.Context(), "ann", redisstore.TokenRead, "", 0)
	enginetest.Check(t, err)
	file := filepath.Join(t.TempDir(), "token")
	enginetest.Check(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	x := openTerminal(t, "top", "--server", address, "--token-file", file)
	x.sees("Resize")
	x.press("3")
	x.sees("default unserved")
	x.press("p")
	x.sees("pause queue default?")
	x.press("y")
	x.sees("role operate")
	x.press("5")
	x.sees("no triggers")
	x.press("1xy")
	x.sees("role operate")
	x.press("q")
	x.ends()
	if info, err := h.Info(t.Context()); err != nil || info.Status.Settled() || info.Status == statemachine.Terminating {
		t.Errorf("the job is %v, %v", info, err)
	}
	if queues, err := store.Queues(t.Context()); err != nil || slices.ContainsFunc(queues, func(q redisstore.QueueInfo) bool { return q.Paused }) {
		t.Errorf("the queues are %v, %v", queues, err)
	}
}

// TestTopNamespace: the head names a namespace that is not the default one, whoever says it.
func TestTopNamespace(t *testing.T) {
	server, _ := startResize(t)
	x := openTerminal(t, "top", "--redis", server.URL())
	x.sees("1 job")
	x.press("q")
	x.ends()
	if got := x.text(); strings.Contains(got, "namespace") {
		t.Errorf("got %q", got)
	}
	t.Setenv("WEIR_NAMESPACE", "shop")
	x = openTerminal(t, "top", "--redis", server.URL())
	x.sees("namespace shop")
	x.press("q")
	x.ends()
}

// TestTopNeedsTerminal: without one it is a wrong command line.
func TestTopNeedsTerminal(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"top"}, &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "needs a terminal") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

// TestTopEnds: signals and the loss of the terminal end it without an error.
func TestTopEnds(t *testing.T) {
	t.Parallel()
	server, _ := startResize(t)
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		x := openTerminal(t, "top", "album", "--redis", server.URL())
		x.sees("Resize, 1 job")
		enginetest.Check(t, x.cmd.Process.Signal(signal))
		x.ends()
	}
	x := openTerminal(t, "top", "album", "--redis", server.URL())
	x.sees("Resize, 1 job")
	enginetest.Check(t, errors.Join(x.tty.Close(), x.pty.Close()))
	x.exits()
}
