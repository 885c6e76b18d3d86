package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	logging.Disable() // as main does
	os.Exit(redistest.Main(m))
}

// says runs the program and wants it to print a text.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil || out.String() != want {
		t.Errorf("%q: %v, %q, want %q", args, err, out.String(), want)
	}
}

// request starts a request that is heard by the returned buffer.
func request(t *testing.T, amount int) (*weirtest.Engine, *job.Handle, *bytes.Buffer) {
	t.Helper()
	var heard bytes.Buffer
	e := weirtest.New(t, &Request{tell: func(text string) { heard.WriteString(text + "\n") }})
	if err := e.Client().SetRetention(t.Context(), job.Retention{Ended: job.Forever}); err != nil { // tests look a month later
		t.Fatal(err)
	}
	return e, e.StartWorker(&Request{Amount: amount, Purpose: "a chair", By: "Ada", Remind: 24 * time.Hour, Expire: 14 * 24 * time.Hour}), &heard
}

func wantOutcome(t *testing.T, e *weirtest.Engine, h *job.Handle, want string) {
	t.Helper()
	o := weirtest.Drain[string](e, h, "outcome")
	if !slices.Equal(o, []string{want}) || e.Status(h) != statemachine.Completed {
		t.Errorf("the job is %s, its outcome %q, want %q", e.Status(h), o, want)
	}
}

func TestSmallIsApproved(t *testing.T) {
	t.Parallel()
	e, h, _ := request(t, 50)
	e.RunUntilIdle()
	wantOutcome(t, e, h, "approved")
}

func TestOneApproval(t *testing.T) {
	t.Parallel()
	e, h, heard := request(t, 51)
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended || strings.Count(heard.String(), "asks for 51 for a chair") != 1 {
		t.Errorf("the job is %s and says %s", e.Status(h), heard)
	}
	if err := h.Write(t.Context(), "decisions", map[string]any{"Yes": "perhaps"}); !errors.Is(err, port.ErrEncoding) {
		t.Errorf("no decision: %v", err)
	}
	e.Feed(h, "decisions", map[string]any{"yes": "perhaps"}, Decision{By: "Ada", Yes: true}, Decision{Yes: true})
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended || strings.Count(heard.String(), "does not count") != 3 {
		t.Errorf("the job is %s and says %s", e.Status(h), heard)
	}
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Bob"})
	e.RunUntilIdle()
	wantOutcome(t, e, h, "approved by Grace")
	e.Feed(h, "decisions", Decision{By: "Edsger"})
	e.Advance(30 * 24 * time.Hour)
	if strings.Count(heard.String(), "is too late") != 2 || strings.Count(heard.String(), "asks") != 1 || len(weirtest.Drain[string](e, h, "outcome")) != 0 {
		t.Errorf("after its end the job says %s", heard)
	}
}

func TestTwoApprovals(t *testing.T) {
	t.Parallel()
	e, h, _ := request(t, 1001)
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Grace", Yes: true})
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended {
		t.Errorf("after one approval the job is %s", e.Status(h))
	}
	e.Feed(h, "decisions", Decision{By: "Bob", Yes: true})
	e.RunUntilIdle()
	wantOutcome(t, e, h, "approved by Grace and Bob")

	e, h, _ = request(t, 1001)
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Bob"})
	e.RunUntilIdle()
	wantOutcome(t, e, h, "rejected by Bob")
}

// People are reminded every day until the request expires after fourteen.
func TestTimers(t *testing.T) {
	t.Parallel()
	e, h, heard := request(t, 900)
	e.Advance(60 * time.Hour)
	if n := strings.Count(heard.String(), "asks"); n != 3 {
		t.Errorf("told %d times in two and a half days", n)
	}
	e.Feed(h, "decisions", Decision{By: "Ada", Yes: true}) // wakes it, and changes nothing
	e.Advance(11 * 24 * time.Hour)
	if n := strings.Count(heard.String(), "asks"); n != 14 || e.Status(h) != statemachine.Suspended {
		t.Errorf("told %d times in thirteen and a half days; the job is %s", n, e.Status(h))
	}
	e.Advance(12 * time.Hour)
	wantOutcome(t, e, h, "expired")
	e.Advance(30 * 24 * time.Hour)
	if n := strings.Count(heard.String(), "asks"); n != 14 {
		t.Errorf("told %d times in the end", n)
	}
}

// process is "approval work" in a process of its own.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	lines []string
}

func work(t *testing.T, program, url string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, "work", "-redis", url)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
	}()
	p.hears("serving requests")
	return p
}

// hears waits until the process has said something.
func (p *process) hears(text string) {
	p.t.Helper()
	heard := func(line string) bool { return strings.Contains(line, text) }
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		ok, all := slices.ContainsFunc(p.lines, heard), strings.Join(p.lines, "\n")
		p.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the process did not say %q, but\n%s", text, all)
		}
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Requests survive every process: they are filed while nobody serves, and decided on
// after the process that asked is dead.
func TestSurvivesKill(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "approval")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	url := redistest.Start(t).URL()
	says(t, "ID  AMOUNT  BY  PURPOSE  STATE\n", "list", "-redis", url)
	says(t, "filed request 1\n", "request", "-redis", url, "-by", "Ada", "900", "a", "chair")
	says(t, "filed request 2\n", "request", "-redis", url, "-by", "Bob", "2500", "a", "boat")

	first := work(t, program, url)
	first.hears("request 1: Ada asks for 900 for a chair; decide with: approval decide -by NAME 1 yes|no")
	first.hears("request 2: Bob asks for 2500")
	says(t, "", "decide", "-redis", url, "-by", "Grace", "2", "yes")
	first.hears("request 2: Grace agrees")
	first.kill()
	says(t, "", "decide", "-redis", url, "-by", "Grace", "1", "yes")
	says(t, "filed request 3\n", "request", "-redis", url, "-by", "Bob", "-expire", "4s", "-remind", "1s", "700", "a", "table")

	second := work(t, program, url)
	second.hears("request 1: approved by Grace")
	second.hears("request 3: Bob asks")
	second.hears("request 3: expired")
	second.kill()

	third := work(t, program, url)
	says(t, "", "decide", "-redis", url, "-by", "Edsger", "2", "no")
	third.hears("request 2: rejected by Edsger")
	says(t, `ID  AMOUNT  BY     PURPOSE    STATE
1   900     "Ada"  "a chair"  approved by Grace
2   2500    "Bob"  "a boat"   rejected by Edsger
3   700     "Bob"  "a table"  expired
`, "list", "-redis", url)
	if err := run(t.Context(), []string{"decide", "-redis", url, "-by", "Bob", "1", "no"}, io.Discard); err == nil || err.Error() != "request 1 was approved by Grace already" {
		t.Errorf("deciding again: %v", err)
	}
	if err := third.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := third.cmd.Wait(); err != nil {
		t.Errorf("a process that was told to stop: %v", err)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	var told heard
	if err := run(t.Context(), []string{"demo"}, &told); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"request 1: approved\n", "request 2: approved by Grace\n", "request 3: approved by Grace and Edsger\n", "request 4: expired\n",
		`the word of "Bob" does not count`, "\nID ", "25000   \"Bob\"  \"a boat\"                 approved by Grace and Edsger\n",
	} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, told.String())
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	for _, c := range []struct {
		says string
		args []string
	}{
		{"need a Redis that outlives", nil},
		{"say what to do", []string{"dance", "-redis", url}},
		{"see approval help", []string{"list", "-wat"}},
		{"need a Redis that outlives", []string{"list"}},
		{"say what to do", []string{"request", "-redis", url, "900", "a chair"}},
		{"say what to do", []string{"request", "-redis", url, "-by", "Ada", "900"}},
		{`"9,5" is no amount`, []string{"request", "-redis", url, "-by", "Ada", "9,5", "a chair"}},
		{"at least 1ms", []string{"request", "-redis", url, "-by", "Ada", "-expire", "0s", "9", "a chair"}},
		{"say what to do", []string{"decide", "-redis", url, "-by", "Ada", "1", "maybe"}},
		{"say what to do", []string{"decide", "-redis", url, "1", "yes"}},
		{`there is no request "7"`, []string{"decide", "-redis", url, "-by", "Ada", "7", "yes"}},
		{"unknown scheme", []string{"list", "-redis", "http://localhost"}},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.says) || out.Len() > 0 {
			t.Errorf("%q: %v, %q", c.args, err, out.String())
		}
	}
	for _, args := range [][]string{{"help"}, {"--help"}, {"request", "--help"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out); err != nil || !strings.Contains(out.String(), "approval request -by Ada") || !strings.Contains(out.String(), "-expire TIME") {
			t.Errorf("%q: %v, %s", args, err, out.String())
		}
	}
}

// heard collects what is told, from several goroutines.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
