package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	logging.Disable() // as main does
	os.Exit(redistest.Main(m))
}

// approval runs the program.
func approval(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// says runs the program and wants it to print a text.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := approval(t.Context(), args...)
	if code != exitOK || stdout != want || stderr != "" {
		t.Errorf("%q: exit code %d, stdout %q, stderr %q, want only %q", args, code, stdout, stderr, want)
	}
}

var policy = Policy{50_00, 1000_00, 24 * time.Hour, 14 * 24 * time.Hour}

// request starts a request that is heard by the returned buffer.
func request(t *testing.T, amount Cents) (*weirtest.Engine, *job.Handle, *bytes.Buffer) {
	t.Helper()
	var heard bytes.Buffer
	e := weirtest.New(t, &Request{people: &people{w: &heard}})
	if err := e.Client().SetRetention(t.Context(), job.Retention{Ended: job.Forever}); err != nil { // tests look a month later
		t.Fatal(err)
	}
	return e, e.StartWorker(&Request{Amount: amount, Purpose: "a chair", By: "Ada", Policy: policy}), &heard
}

func wantOutcome(t *testing.T, e *weirtest.Engine, h *job.Handle, result string, by ...string) {
	t.Helper()
	o := weirtest.Drain[Outcome](e, h, "outcome")
	if len(o) != 1 || o[0].Result != result || !slices.Equal(o[0].By, by) || e.Status(h) != statemachine.Completed {
		t.Errorf("the job is %s, its outcome %+v, want %s by %v", e.Status(h), o, result, by)
	}
}

func TestSmallIsApproved(t *testing.T) {
	t.Parallel()
	e, h, _ := request(t, 50_00)
	e.RunUntilIdle()
	wantOutcome(t, e, h, approved)
}

func TestOneApproval(t *testing.T) {
	t.Parallel()
	e, h, heard := request(t, 50_01)
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended || strings.Count(heard.String(), "asks for 50.01 for a chair") != 1 {
		t.Errorf("the job is %s and says %s", e.Status(h), heard)
	}
	e.Feed(h, "decisions", map[string]any{"yes": "perhaps"}, Decision{By: "Ada", Yes: true}, Decision{Yes: true})
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended || strings.Count(heard.String(), "does not count") != 3 {
		t.Errorf("the job is %s and says %s", e.Status(h), heard)
	}
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Bob"})
	e.RunUntilIdle()
	wantOutcome(t, e, h, approved, "Grace")
	e.Feed(h, "decisions", Decision{By: "Edsger"})
	e.Advance(30 * 24 * time.Hour)
	if strings.Count(heard.String(), "is too late") != 2 || strings.Contains(heard.String(), "reminder") || len(weirtest.Drain[Outcome](e, h, "outcome")) != 0 {
		t.Errorf("after its end the job says %s", heard)
	}
}

func TestTwoApprovals(t *testing.T) {
	t.Parallel()
	e, h, _ := request(t, 1000_01)
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Grace", Yes: true})
	e.RunUntilIdle()
	if e.Status(h) != statemachine.Suspended {
		t.Errorf("after one approval the job is %s", e.Status(h))
	}
	e.Feed(h, "decisions", Decision{By: "Bob", Yes: true})
	e.RunUntilIdle()
	wantOutcome(t, e, h, approved, "Grace", "Bob")

	e, h, _ = request(t, 1000_01)
	e.Feed(h, "decisions", Decision{By: "Grace", Yes: true}, Decision{By: "Bob"})
	e.RunUntilIdle()
	wantOutcome(t, e, h, rejected, "Bob")
}

// People are reminded every day until the request expires after fourteen.
func TestTimers(t *testing.T) {
	t.Parallel()
	e, h, heard := request(t, 900_00)
	e.Advance(60 * time.Hour)
	if n := strings.Count(heard.String(), "reminder"); n != 2 {
		t.Errorf("%d reminders in two and a half days", n)
	}
	e.Feed(h, "decisions", Decision{By: "Ada", Yes: true}) // wakes it, and changes nothing
	e.Advance(11 * 24 * time.Hour)
	if n := strings.Count(heard.String(), "reminder"); n != 13 || e.Status(h) != statemachine.Suspended {
		t.Errorf("%d reminders in thirteen and a half days; the job is %s", n, e.Status(h))
	}
	e.Advance(12 * time.Hour)
	wantOutcome(t, e, h, expired)
	e.Advance(30 * 24 * time.Hour)
	if n := strings.Count(heard.String(), "reminder"); n != 13 {
		t.Errorf("%d reminders in the end", n)
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
	p := &process{t: t, cmd: exec.Command(program, "work", "--redis", url)}
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
	says(t, "no requests\n", "list", "--redis", url)
	says(t, "filed request 1\n", "request", "--redis", url, "--by", "Ada", "900", "a", "chair")
	says(t, "{\"id\":\"2\"}\n", "request", "--redis", url, "--by", "Bob", "-o", "json", "2500", "a", "boat")

	first := work(t, program, url)
	first.hears("request 1: Ada asks for 900.00 for a chair; decide with: approval decide 1 yes|no --as NAME")
	first.hears("request 2: Bob asks for 2,500.00")
	says(t, "noted: Grace says yes to request 2\n", "decide", "--redis", url, "--as", "Grace", "2", "yes")
	first.hears("request 2: Grace agrees; one more person must")
	first.kill()
	says(t, "noted: Grace says yes to request 1\n", "decide", "--redis", url, "--as", "Grace", "1", "yes")
	says(t, "filed request 3\n", "request", "--redis", url, "--by", "Bob", "--expire", "4s", "--remind", "1s", "700", "a", "table")

	second := work(t, program, url)
	second.hears("request 1: approved by Grace")
	second.hears("reminder: request 3: Bob asks")
	second.hears("request 3: expired")
	second.kill()

	third := work(t, program, url)
	says(t, "noted: Edsger says no to request 2\n", "decide", "--redis", url, "--as", "Edsger", "--note", "too wet", "2", "no")
	third.hears("request 2: rejected by Edsger")
	wantList(t, url, "1 approved by Grace", "2 rejected by Edsger", "3 expired")
	code, stdout, stderr := approval(t.Context(), "decide", "--redis", url, "--as", "Bob", "1", "no")
	if code != exitError || stdout != "" || stderr != "approval: request 1 was approved by Grace already\n" {
		t.Errorf("deciding again: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if err := third.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := third.cmd.Wait(); err != nil {
		t.Errorf("a process that was told to stop: %v", err)
	}
}

// wantList compares what list tells as JSON.
func wantList(t *testing.T, url string, want ...string) {
	t.Helper()
	code, stdout, stderr := approval(t.Context(), "list", "--redis", url, "-o", "json")
	var items []item
	if err := json.Unmarshal([]byte(stdout), &items); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	var got []string
	for _, i := range items {
		got = append(got, i.ID+" "+i.state())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is %q, want %q", got, want)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := approval(t.Context(), "--demo")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"request 1: approved\n", "request 2: approved by Grace\n", "request 3: approved by Grace and Edsger\n", "request 4: rejected by Edsger\n",
		"reminder: request 5: ", "request 5: expired\n", `the word of "Bob" does not count`, "\nID ", "a boat                         approved by Grace and Edsger\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "say what to do", nil},
		{2, "say what to do", []string{"dance"}},
		{2, "use table or json", []string{"list", "-o", "xml"}},
		{2, "see approval --help", []string{"list", "--wat"}},
		{2, "see approval --help", []string{"list", "--redis", url, "all"}},
		{2, "need a Redis that outlives", []string{"list"}},
		{2, "say who asks", []string{"request", "--redis", url, "900", "a chair"}},
		{2, "say who asks", []string{"request", "--redis", url, "--by", "Ada", "900"}},
		{2, `"9,5" is no amount`, []string{"request", "--redis", url, "--by", "Ada", "9,5", "a chair"}},
		{2, "is no amount", []string{"request", "--redis", url, "--by", "Ada", "--large", "x", "9", "a chair"}},
		{2, "at least 10ms", []string{"request", "--redis", url, "--by", "Ada", "--expire", "0s", "9", "a chair"}},
		{2, "say who decides", []string{"decide", "--redis", url, "--as", "Ada", "1", "maybe"}},
		{2, "say who decides", []string{"decide", "--redis", url, "1", "yes"}},
		{1, `there is no request "7"`, []string{"decide", "--redis", url, "--as", "Ada", "7", "yes"}},
		{1, "unknown scheme", []string{"list", "--redis", "http://localhost"}},
	} {
		code, stdout, stderr := approval(t.Context(), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "approval: ") {
			t.Errorf("%q: stderr must be one line that begins with approval: %q", c.args, stderr)
		}
	}
	for _, args := range [][]string{{"--help"}, {"request", "--help"}, {"decide", "--help"}, {"list", "--help"}, {"work", "--help"}} {
		if code, stdout, _ := approval(t.Context(), args...); code != exitOK || !strings.Contains(stdout, "Examples:\n  approval ") {
			t.Errorf("%q: exit code %d, %s", args, code, stdout)
		}
	}
}
