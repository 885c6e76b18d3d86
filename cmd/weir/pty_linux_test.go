package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
)

// terminal opens a pseudo-terminal of that many columns and lines: what is written to tty can
// be read from screen.
func terminal(t *testing.T, columns, lines uint16) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	enginetest.Check(t, err)
	t.Cleanup(func() { _ = screen.Close() })
	var number uint32
	var unlock int32
	control(t, screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	enginetest.Check(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	size := [4]uint16{lines, columns}
	control(t, tty, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	return screen, tty
}

func control(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); err != 0 {
		t.Fatalf("ioctl %#x: %v", request, err)
	}
}

// onTerminal starts a command on a terminal of that size, and keeps what it draws.
func onTerminal(t *testing.T, width, height uint16, args ...string) (cmd *exec.Cmd, got *buffer) {
	t.Helper()
	screen, tty := terminal(t, width, height)
	cmd, got = process(t, args...), &buffer{}
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=", "LC_ALL=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	enginetest.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() { _, _ = io.Copy(got, screen) }()
	return cmd, got
}

// On a terminal each command that reads and is watched is drawn in place, with the colours and the width of the terminal.
func TestReadsWatchedOnTerminal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shop(t, server.URL())
	for line, want := range map[string]string{"jobs --watch": "queued", "graph draw one -w": "in", "why one --watch": "waits for"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd, got := onTerminal(t, 50, 20, append(strings.Fields(line), "--redis", server.URL())...)
			defer func() {
				if t.Failed() {
					t.Logf("%q", got.String())
				}
			}()
			enginetest.Until(t, "it is drawn", func() bool { return strings.Contains(got.String(), want) })
			enginetest.Until(t, "it is drawn in place", func() bool { return regexp.MustCompile(`\x1b\[[0-9]+A`).MatchString(got.String()) })
			enginetest.Check(t, cmd.Process.Signal(os.Interrupt))
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			plain := regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`).ReplaceAllString(got.String(), "")
			if plain == got.String() {
				t.Error("there are no colours")
			}
			for _, one := range strings.FieldsFunc(plain, func(r rune) bool { return r == '\r' || r == '\n' }) {
				if n := len([]rune(one)); n > 50 {
					t.Errorf("%d columns: %s", n, one)
				}
			}
		})
	}
}

// On a terminal a watched tree has colours and is drawn in place, not higher or wider than
// the terminal; on Ctrl-C the last picture stays.
func TestWatchOnTerminal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	cmd, got := onTerminal(t, 50, 10, "tree", "one", "--watch", "--interval", "10ms", "--redis", server.URL())
	enginetest.Until(t, "the tree is drawn in place", func() bool { return strings.Contains(got.String(), "\x1b[2A") })
	enginetest.Check(t, h.Write(t.Context(), "in", "x"))
	enginetest.Until(t, "the tree has changed", func() bool { return strings.Contains(got.String(), "in 1/1") })
	enginetest.Check(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	_, rest, _ := strings.Cut(got.String(), "in 1/1")
	if strings.Count(rest, "\x1b[J") == 0 || !strings.Contains(got.String(), "\x1b[33m○ queued\x1b[m") {
		t.Errorf("got %q", got.String())
	}
	plain := regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`).ReplaceAllString(got.String(), "")
	for _, line := range strings.FieldsFunc(plain, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if n := len([]rune(line)); n > 50 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// On a terminal weir dev says what runs and what to type next, and then what becomes of root jobs.
func TestDevOnTerminal(t *testing.T) {
	t.Parallel()
	cmd, got := onTerminal(t, 120, 40, "dev", "--addr", "127.0.0.1:0")
	defer func() {
		if t.Failed() {
			t.Logf("%s", got.String())
		}
	}()
	enginetest.Until(t, "it says what to type next", func() bool { return strings.Contains(got.String(), "weir top") })
	url := regexp.MustCompile(`export WEIR_REDIS_URL=(\S+)`).FindStringSubmatch(got.String())
	if url == nil || !strings.Contains(got.String(), "  page   http://127.0.0.1:") || strings.Contains(got.String(), "level=") {
		t.Fatal("it does not say where Redis and the page are")
	}
	enginetest.Until(t, "types are registered", func() bool { return strings.Contains(weir(t, url[1], "types"), "map") })
	weir(t, url[1], "create", "map", "--args", `{"expr":"1/it"}`, "--alias", "part")
	told := func(event string) {
		enginetest.Until(t, event, func() bool { return strings.Contains(got.String(), event) })
	}
	told("started")
	weir(t, url[1], "send", "part", "in", "4", "--close")
	told("completed")
	if strings.Contains(got.String(), "append-only") {
		t.Error("it warns of what it said when it began")
	}
	enginetest.Check(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
