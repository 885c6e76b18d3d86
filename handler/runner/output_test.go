package runner_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/enginetest"
)

// logged is what a pool logs.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAfterEachThatHangsHarmsNoPayload: the payload before it keeps its result and what it printed, and the process is replaced.
func TestAfterEachThatHangsHarmsNoPayload(t *testing.T) {
	t.Parallel()
	for lang, after := range map[string]string{handler.Node: "console.log('J: x|y'); for (;;);", handler.Python: "print('J: x|y')\nwhile True: pass", handler.Shell: "echo 'J: x|y'; sleep 1000"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			log := &logged{}
			p := newPool(t, func(c *runner.Config) { c.Processes, c.Logger = 1, slog.New(slog.NewTextHandler(log, nil)) })
			d := languages[lang]
			d.AfterEach, d.Options.Timeout = after, handler.Duration(6*time.Second)
			for range 2 {
				one := do(t, p, stored("t", d), "a")[0]
				if r := told(one); !strings.HasPrefix(r, `200 "a1" before,each `) || !strings.HasSuffix(r, ",a") {
					t.Errorf("got %s", r)
				}
				if notes := fmt.Sprint(one.Notes); !strings.Contains(notes, "afterEach did not end: it took longer than 6s") {
					t.Errorf("notes %s", notes)
				}
			}
			if text := log.String(); !strings.Contains(text, "afterEach of a handler did not end") || !strings.Contains(text, "it took longer than 6s") {
				t.Errorf("log: %s", text)
			}
		})
	}
}

// TestM22LinesOfAfterEachAreOfTheLastPayload: they start jobs and are logged with the job whose batch it was, not with the next one.
func TestM22LinesOfAfterEachAreOfTheLastPayload(t *testing.T) {
	t.Parallel()
	d := js("if (payload == 'retry' && job.try == 1) job.retry('no')", quick(0))
	d.AfterEach = "console.log('swept'); console.log('J: type2|hello')"
	h := newHouse(t, map[string]handler.Definition{"type1": d, "type2": js("return payload")})
	for n, payload := range []string{"ok", "retry"} {
		handle := h.add("type1", payload)
		h.ended(handle)
		h.until(fmt.Sprintf("after %s there are %d jobs of type2", payload, n+1), func() bool { return len(h.of("type2")) == n+1 })
		logs, err := handle.Logs(t.Context(), 100)
		enginetest.Check(t, err)
		if len(logs) != 1 || string(logs[0].Entry) != `"swept"` {
			t.Errorf("log of %s: %+v", payload, logs)
		}
	}
}

// speakers print on both streams, and the name of their payload.
var speakers = map[string]handler.Definition{
	handler.Node:   {Lang: handler.Node, Body: "console.error('J: type2|' + payload); console.error('e' + payload); console.log('J: type3|' + payload)"},
	handler.Python: {Lang: handler.Python, Body: "import sys\nprint('J: type2|' + payload, file=sys.stderr)\nprint('e' + payload, file=sys.stderr)\nprint('J: type3|' + payload)"},
	handler.Shell:  {Lang: handler.Shell, Body: `read p; echo "J: type2|$p" >&2; echo "e$p" >&2; echo "J: type3|$p"`},
}

// TestM12LinesOnStandardErrorAreLog: they are their payload's, and ask for no job.
func TestM12LinesOnStandardErrorAreLog(t *testing.T) {
	t.Parallel()
	for lang, d := range speakers {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			for i, r := range do(t, newPool(t, nil), stored("t", d), "a", "b", "c") {
				name, log, jobs := string(rune('a'+i)), "", ""
				for _, line := range r.Output {
					if f, ok := line.Follow(); ok {
						jobs += f.Type + f.Payload
					} else {
						log += line.Text + " "
					}
				}
				if want := "J: type2|" + name + " e" + name + " "; log != want || jobs != "type3"+name {
					t.Errorf("payload %s: log %q, jobs %q; want %q, %q", name, log, jobs, want, "type3"+name)
				}
			}
		})
	}
	h := newHouse(t, map[string]handler.Definition{"type1": speakers[handler.Node], "type2": js("return payload"), "type3": js("return payload")})
	h.ended(h.add("type1", "x"))
	h.until("there is a job of type3", func() bool { return len(h.of("type3")) == 1 })
	if two := len(h.of("type2")); two != 0 {
		t.Errorf("%d jobs of type2, want none", two)
	}
}

// faulty are parts of code that fail on their second line, and what is said of each.
var faulty = map[string]struct{ code, want string }{
	handler.Node:   {"const a = 1\nnope(a)", "ReferenceError: nope is not defined (%s:2)"},
	handler.Python: {"a = 1\nnope(a)", "NameError: name 'nope' is not defined (%s:2)"},
	handler.Shell:  {"echo one\ncat nowhere; exit 3", "its process ended with exit code 3"},
}

// TestPartsSayWhatFailed: the first line of an error of before or beforeEach says what and where it was, and what was printed is part of the failure;
// one of afterEach is in the log of the job, and of the runner.
func TestPartsSayWhatFailed(t *testing.T) {
	t.Parallel()
	for lang, f := range faulty {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			log := &logged{}
			p := newPool(t, func(c *runner.Config) { c.Processes, c.Logger = 1, slog.New(slog.NewTextHandler(log, nil)) })
			where := func(part string) string { return strings.ReplaceAll(f.want, "%s", part) }
			printed := ""
			if lang == handler.Shell {
				printed = "; it printed last: "
			}
			before := do(t, p, stored("before", handler.Definition{Lang: lang, Before: f.code, Body: "return"}), "x")[0]
			text := runner.Failing(&before).Error()
			if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(first, "error 500: its code cannot run: "+where("before")+printed) {
				t.Errorf("before: %s", text)
			} else if lang == handler.Shell && (!strings.Contains(first, "one") || !strings.Contains(first, "cat: nowhere: No such file")) {
				t.Errorf("before: %s", text)
			}
			each := do(t, p, stored("each", handler.Definition{Lang: lang, BeforeEach: f.code, Body: "return"}), "x")[0]
			if text := runner.Failing(&each).Error(); !strings.HasPrefix(text, "error 500: "+where("beforeEach")+printed) {
				t.Errorf("beforeEach: %s", text)
			}
			if lang != handler.Shell {
				body := do(t, p, stored("body", handler.Definition{Lang: lang, Body: f.code}), "x")[0]
				text := runner.Failing(&body).Error()
				if !strings.HasPrefix(text, "error 500: "+where("body")+"\n") || strings.Contains(text, "eval") || strings.Contains(text, "<string>") {
					t.Errorf("body: %s", text)
				}
			}
			d := languages[lang]
			d.AfterEach = f.code
			after := do(t, p, stored("after", d), "a")[0]
			if want := []string{"afterEach failed: " + where("afterEach")}; after.Status != 200 || fmt.Sprint(after.Notes) != fmt.Sprint(want) {
				t.Errorf("afterEach: %+v, want %q", after, want)
			}
			if text := log.String(); !strings.Contains(text, "afterEach of a handler failed") || lang == handler.Shell && !strings.Contains(text, "cat: nowhere: No such file") {
				t.Errorf("log: %s", text)
			}
		})
	}
}

// TestErrorsOfAfterEachAreInTheLogOfTheJob, behind what was printed.
func TestErrorsOfAfterEachAreInTheLogOfTheJob(t *testing.T) {
	t.Parallel()
	d := js("return payload")
	d.AfterEach = "console.log('swept'); throw new Error('no broom')"
	h := newHouse(t, map[string]handler.Definition{"t": d})
	handle := h.add("t", "x")
	h.ended(handle)
	if got, want := h.log(handle), "swept\nafterEach failed: Error: no broom (afterEach:1)\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

// TestTheLastErrorsAreTheReason: lines of standard error come before those of standard output, of which the last fill the rest.
func TestTheLastErrorsAreTheReason(t *testing.T) {
	t.Parallel()
	line := func(text string, stderr bool) handler.Line { return handler.Line{Text: text, Stderr: stderr} }
	for _, c := range []struct {
		lines []handler.Line
		want  string
	}{
		{[]handler.Line{line("e1", true), line("o1", false), line("o2", false), line("o3", false)}, "e1 / o2 / o3"},
		{[]handler.Line{line("e1", true), line("o1", false), line("e2", true), line("e3", true), line("e4", true), line("o2", false)}, "e2 / e3 / e4"},
		{[]handler.Line{line("o1", false)}, "o1"},
	} {
		r := handler.Result{Status: 500, Error: "no", Output: c.lines}
		if got, want := runner.Failing(&r).Error(), "error 500: no; it printed last: "+c.want; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
