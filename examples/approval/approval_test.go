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

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(redistest.Main(m))
}

// approval runs the program.
func approval(t *testing.T, url string, w io.Writer, args ...string) error {
	d := desk{url: url, w: w, remind: time.Hour, expire: time.Hour}
	return d.run(t.Context(), args)
}

// says runs the program and wants it to print a text.
func says(t *testing.T, want, url string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := approval(t, url, &out, args...); err != nil || out.String() != want {
		t.Errorf("%q: %v, %q, want %q", args, err, out.String(), want)
	}
}

// request starts a request that is heard by the returned buffer.
func request(t *testing.T, amount int) (*weirtest.Engine, *client.Handle, *bytes.Buffer) {
	t.Helper()
	var heard bytes.Buffer
	e := weirtest.New(t, &Request{w: &heard})
	if err := e.Client().SetRetention(t.Context(), job.Retention{Ended: job.Forever}); err != nil { // tests look a month later
		t.Fatal(err)
	}
	return e, e.StartWorker(&Request{Name: "chair", Amount: amount, By: "Ada", Remind: 24 * time.Hour, Expire: 14 * 24 * time.Hour}), &heard
}

func wantOutcome(t *testing.T, e *weirtest.Engine, h *client.Handle, want string) {
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
	if e.Status(h) != statemachine.Suspended || strings.Count(heard.String(), "request chair: Ada asks for 51") != 1 {
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
	p := &process{t: t, cmd: exec.Command(program, "-redis", url, "work")}
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
	says(t, "REQUEST  AMOUNT  BY  STATE\n", url, "list")
	says(t, "", url, "request", "Ada", "chair", "900")
	says(t, "", url, "request", "Bob", "boat", "2500")
	says(t, "", url, "request", "Bob", "boat", "2500") // is the same one
	if err := approval(t, url, io.Discard, "request", "Bob", "boat", "40"); !errors.Is(err, job.ErrExists) {
		t.Errorf("another boat: %v", err)
	}

	first := work(t, program, url)
	first.hears("request chair: Ada asks for 900; decide with: approval decide NAME chair yes|no")
	first.hears("request boat: Bob asks for 2500")
	says(t, "", url, "decide", "Grace", "boat", "yes")
	first.hears("request boat: Grace agrees")
	first.kill()
	says(t, "", url, "decide", "Grace", "chair", "yes")
	soon := desk{url: url, w: io.Discard, remind: time.Second, expire: 4 * time.Second}
	if err := soon.run(t.Context(), []string{"request", "Bob", "table", "700"}); err != nil {
		t.Error(err)
	}

	second := work(t, program, url)
	second.hears("request chair: approved by Grace")
	second.hears("request table: Bob asks")
	second.hears("request table: expired")
	second.kill()

	third := work(t, program, url)
	says(t, `REQUEST  AMOUNT  BY     STATE
chair    900     "Ada"  approved by Grace
boat     2500    "Bob"  1 of 2 agreed
table    700     "Bob"  expired
`, url, "list")
	says(t, "", url, "decide", "Edsger", "boat", "no")
	third.hears("request boat: rejected by Edsger")
	if err := approval(t, url, io.Discard, "decide", "Bob", "chair", "no"); err == nil || !strings.Contains(err.Error(), "chair is decided already") {
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
	if err := approval(t, "", &told, "demo"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"request pencils: approved\n", "request chair: approved by Grace\n", "request boat: approved by Grace and Edsger\n", "request nonsense: expired\n",
		`the word of "Bob" does not count`, "\nREQUEST ", "boat      25000   \"Bob\"  approved by Grace and Edsger\n",
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
		says, url string
		args      []string
	}{
		{"need a Redis that outlives", "", nil},
		{"need a Redis that outlives", "", []string{"list"}},
		{"say what to do", url, nil},
		{"say what to do", url, []string{"dance"}},
		{"say what to do", url, []string{"request", "Ada", "900"}},
		{`"9,5" is no amount`, url, []string{"request", "Ada", "chair", "9,5"}},
		{`"-1" is no amount`, url, []string{"request", "Ada", "chair", "-1"}},
		{"invalid name", url, []string{"request", "Ada", "a chair", "900"}},
		{"say what to do", url, []string{"decide", "Ada", "chair", "maybe"}},
		{"say what to do", url, []string{"decide", "chair", "yes"}},
		{"see approval list", url, []string{"decide", "Ada", "chair", "yes"}},
		{"unknown scheme", "http://localhost", []string{"list"}},
	} {
		var out bytes.Buffer
		if err := approval(t, c.url, &out, c.args...); err == nil || !strings.Contains(err.Error(), c.says) || out.Len() > 0 {
			t.Errorf("%q: %v, %q", c.args, err, out.String())
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
