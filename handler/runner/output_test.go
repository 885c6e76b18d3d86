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
				if r := told(do(t, p, stored("t", d), "a")[0]); !strings.HasPrefix(r, `200 "a1" before,each `) || !strings.HasSuffix(r, ",a") {
					t.Errorf("got %s", r)
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
