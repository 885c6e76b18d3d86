package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/sandbox"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// newPool returns a pool that ends with the test.
func newPool(t testing.TB, change func(*runner.Config)) *runner.Pool {
	t.Helper()
	cfg := runner.Config{HTTP: component.HTTPPolicy{AllowPrivate: true}, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	p, err := runner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// stored is a handler of a type.
func stored(typ string, d handler.Definition) *handler.Stored {
	return &handler.Stored{Type: typ, Version: 1, Definition: d}
}

// payloads are some that are strings.
func payloads(texts ...string) []runner.Payload {
	all := make([]runner.Payload, len(texts))
	for i, text := range texts {
		raw, _ := json.Marshal(text)
		all[i] = runner.Payload{ID: fmt.Sprint("p", i), Try: 1, Data: raw}
	}
	return all
}

// do runs payloads, and fails the test if nobody waits for them.
func do(t testing.TB, p *runner.Pool, h *handler.Stored, texts ...string) []handler.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	results, err := p.Do(ctx, h, payloads(texts...))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// told is a result as text.
func told(r handler.Result) string {
	var lines []string
	for _, line := range r.Output {
		lines = append(lines, line.Text)
	}
	return strings.TrimSpace(fmt.Sprint(r.Status, " ", string(r.Value), " ", strings.Join(lines, ",")))
}

// languages are handlers that do the same.
var languages = map[string]handler.Definition{
	handler.Node: {
		Lang: handler.Node, Before: "console.log('before'); globalThis.n = 0", BeforeEach: "console.log('each ' + batch.size)",
		Body: "console.log(payload); n++; if (payload == 'c') job.status = 404; return payload + n", AfterEach: "console.log('after')",
	},
	handler.Python: {
		Lang: handler.Python, Before: "print('before')\nn = 0", BeforeEach: "print('each', batch)",
		Body: "global n\nprint(payload)\nn += 1\nif payload == 'c': job.status = 404\nreturn payload + str(n)", AfterEach: "print('after')",
	},
	handler.Shell: {
		Lang: handler.Shell, Before: "echo before; echo 0 > n", BeforeEach: "echo each 3",
		Body: `read p; echo $p; n=$(($(cat n) + 1)); echo $n > n; if [ $p = c ]; then s=404; else s=200; fi; echo "{\"status\":$s,\"result\":\"$p$n\"}" >&3`, AfterEach: "echo after",
	},
}

func TestM22TheOrderOfABatch(t *testing.T) {
	t.Parallel()
	for lang, d := range languages {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
			var got []string
			for _, batch := range [][]string{{"a", "b", "c"}, {"d"}} {
				for _, r := range do(t, p, stored("t", d), batch...) {
					got = append(got, told(r))
				}
			}
			want := []string{`200 "a1" before,each 3,a`, `200 "b2" b`, `404 "c3" c,after`, `200 "d4" each 1,d,after`}
			if lang == handler.Shell {
				want[3] = `200 "d4" each 3,d,after` // its code does not know
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestM23ABatchOverHTTP(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		_, _ = fmt.Fprint(body, r.Header.Get("Weir-Payloads"), " ")
		buf := make([]byte, 100)
		n, _ := r.Body.Read(buf)
		body.Write(buf[:n])
		asked = body.String()
		_, _ = fmt.Fprint(w, "200\n404\n500\n")
	}))
	defer server.Close()
	p := newPool(t, nil)
	h := stored("t", handler.Definition{Lang: handler.HTTP, Body: server.URL, Options: handler.Options{Batch: 10}})
	results := do(t, p, h, "a", "b", "c")
	for i, want := range []handler.Code{handler.OK, handler.Failed, handler.Error} {
		if got := handler.CodeOf(results[i].Status); got != want {
			t.Errorf("payload %d: %s, want %s", i, got, want)
		}
	}
	if asked != "3 a\nb\nc\n" {
		t.Errorf("the server was asked %q", asked)
	}
}

func TestHTTPSaysItsStatus(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = fmt.Fprint(w, `{"a": 1}`)
	}))
	defer server.Close()
	p := newPool(t, nil)
	for path, want := range map[string]string{"/": `200 {"a": 1}`, "/gone": `410 {"a": 1}`} {
		h := stored("t"+path, handler.Definition{Lang: handler.HTTP, Body: server.URL + path})
		if got := told(do(t, p, h, "x")[0]); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	private, err := runner.New(runner.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	if r := do(t, private, stored("t", handler.Definition{Lang: handler.HTTP, Body: server.URL}), "x")[0]; r.Status != 500 || !strings.Contains(r.Error, "not a public address") {
		t.Errorf("a private address: %+v", r)
	}
}

// harm is what a handler may do to others, and what is said of it.
var harm = map[string]struct {
	d    handler.Definition
	want []string // one of these is in the error
}{
	"hangs":                    {handler.Definition{Lang: handler.Node, Body: "for (;;);", Options: handler.Options{Timeout: handler.Duration(500 * time.Millisecond)}}, []string{"it took longer than 500ms"}},
	"hangs in a shell":         {handler.Definition{Lang: handler.Shell, Body: "sleep 1000 & sleep 1000", Options: handler.Options{Timeout: handler.Duration(500 * time.Millisecond)}}, []string{"it took longer than 500ms"}},
	"floods standard output":   {handler.Definition{Lang: handler.Shell, Body: "yes"}, []string{"it printed more than 1048576 bytes"}},
	"floods standard error":    {handler.Definition{Lang: handler.Shell, Body: "yes >&2"}, []string{"it printed more than 1048576 bytes"}},
	"floods both":              {handler.Definition{Lang: handler.Python, Body: "import sys\nfor f in sys.stdout, sys.stderr: print('x' * 600000, file=f)"}, []string{"it printed more than 1048576 bytes"}},
	"floods without a newline": {handler.Definition{Lang: handler.Python, Body: "import sys\nwhile True: sys.stdout.write('x' * 65536)"}, []string{"it printed more than 1048576 bytes"}},
	"forks":                    {handler.Definition{Lang: handler.Python, Body: "import os\nwhile True: os.fork()"}, []string{"Resource temporarily unavailable", "its process ended", "wrote to file descriptor 3"}},
	"writes 1 GB":              {handler.Definition{Lang: handler.Python, Body: "f = open('big', 'wb')\nfor _ in range(1024): f.write(b'x' * 1048576)"}, []string{"No space left on device", "File too large", "signal: file size limit exceeded"}},
	"writes 1 GB in a shell":   {handler.Definition{Lang: handler.Shell, Body: "head -c 1000000000 /dev/zero > big"}, []string{"exit code 153: it wrote a file larger than options.disk", "No space left on device"}},
	"writes 1 GB to many":      {handler.Definition{Lang: handler.Python, Body: "for n in range(1024): open('f%d' % n, 'wb').write(b'x' * 1048576)"}, []string{"No space left on device"}},
	"allocates 4 GB":           {handler.Definition{Lang: handler.Python, Body: "x = bytearray(4 << 30)"}, []string{"MemoryError"}},
	"allocates 4 GB in node":   {handler.Definition{Lang: handler.Node, Body: "const all = []; for (;;) all.push(Buffer.alloc(64 << 20, 1))"}, []string{"allocation failed", "out of memory", "its process ended"}},
	"exits 137":                {handler.Definition{Lang: handler.Node, Body: "process.exit(137)"}, []string{"its process ended: exit status 137"}},
	"exits 137 in a shell":     {handler.Definition{Lang: handler.Shell, Body: "exit 137"}, []string{"its process ended with exit code 137"}},
	"kills itself":             {handler.Definition{Lang: handler.Shell, Body: "kill -9 $$"}, []string{"signal: killed"}},
	"answers and hangs":        {handler.Definition{Lang: handler.Node, Body: "require('fs').writeSync(3, JSON.stringify({id: job.id, status: 200}) + '\\n'); for (;;);", Options: handler.Options{Timeout: handler.Duration(500 * time.Millisecond)}}, []string{"it took longer than 500ms"}},
	"writes over the results":  {handler.Definition{Lang: handler.Node, Body: "require('fs').writeSync(3, 'nonsense\\n'); return 1"}, []string{"file descriptor 3, which is the runner's"}},
	"reads what it may not":    {handler.Definition{Lang: handler.Python, Body: "open('/root/.profile').read()"}, []string{"Permission denied"}},
	"uses the network":         {handler.Definition{Lang: handler.Python, Body: "import socket\nsocket.create_connection(('1.1.1.1', 53), 2)"}, []string{"Network is unreachable", "Permission denied"}},
	"asks for the network":     {handler.Definition{Lang: handler.Python, Body: "pass", Options: handler.Options{Network: true}}, []string{"which this runner does not allow"}},
	"does not parse":           {handler.Definition{Lang: handler.Python, Body: "return )"}, []string{"its code cannot run", "SyntaxError"}},
	"has no such language":     {handler.Definition{Lang: "x-cobol", Body: "x"}, []string{"language x-cobol is not configured here"}},
	"has no such secret":       {handler.Definition{Lang: handler.Shell, Body: "x", Options: handler.Options{Secrets: []string{"KEY"}}}, []string{"secret KEY is not set"}},
}

// beyond returns what a machine cannot keep a handler from, and why.
func beyond(a sandbox.Abilities) map[string]string {
	cannot := map[string]string{}
	if !a.Limits {
		for name := range harm {
			cannot[name] = "this system has no sandbox"
		}
	}
	if !a.Processes {
		cannot["forks"] = "nothing limits the number of processes here"
	}
	if !a.Namespaces {
		cannot["writes 1 GB to many"] = "without namespaces only the size of each file is limited"
	}
	if !a.Namespaces && a.Landlock < 4 {
		cannot["uses the network"] = "there are neither namespaces nor landlock 4 here"
	}
	return cannot
}

// TestFailureOfFloodIsSaidOnce: what a process printed that was ended is in its output, and not in the error, to which it is added.
func TestFailureOfFloodIsSaidOnce(t *testing.T) {
	t.Parallel()
	if why := beyond(sandbox.Probe())["floods standard output"]; why != "" {
		t.Skip(why)
	}
	r := do(t, newPool(t, nil), stored("flood", handler.Definition{Lang: handler.Shell, Body: "yes"}), "x")[0]
	if text := runner.Failing(&r).Error(); strings.Count(text, "it printed last: y / y / y") != 1 {
		t.Errorf("the failure is %q", text)
	}
}

// TestHarmStaysWithItsPayloads has handlers do their worst while another one works: it is done, and each says what it did.
func TestHarmStaysWithItsPayloads(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	cannot := beyond(sandbox.Probe())
	var all sync.WaitGroup
	good := stored("good", handler.Definition{Lang: handler.Node, Body: "return payload.length"})
	for name, h := range harm {
		if why := cannot[name]; why != "" {
			t.Run(name, func(t *testing.T) { t.Skip(why) })
			continue
		}
		all.Go(func() {
			r := do(t, p, stored(name, h.d), "x")[0]
			for _, want := range h.want {
				if handler.CodeOf(r.Status) == handler.Error && strings.Contains(r.Error, want) {
					return
				}
			}
			t.Errorf("one that %s: status %d, error %q: want one of %q", name, r.Status, r.Error, h.want)
		})
		all.Go(func() {
			if r := told(do(t, p, good, "four")[0]); r != "200 4" {
				t.Errorf("beside one that %s: %s", name, r)
			}
		})
	}
	all.Wait()
}

// TestWhatCannotBeToldIsTheCodesError has code return what JSON does not have, or set a status that is no number: its error says so.
func TestWhatCannotBeToldIsTheCodesError(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	for n, c := range []struct{ lang, body, want string }{
		{handler.Python, "return {'mean': float('nan')}", "not JSON compliant"},
		{handler.Python, "return [float('inf')]", "not JSON compliant"},
		{handler.Python, "job.status = '404'", "job.status is '404': set it to a number"},
		{handler.Python, "job.status = None", "job.status is None"},
		{handler.Node, "job.status = '404'", `job.status is "404": set it to a number`},
		{handler.Node, "job.status = 404.5", "job.status is 404.5"},
		{handler.Node, "job.status = undefined", "job.status is undefined"},
	} {
		r := do(t, p, stored(fmt.Sprint("t", n), handler.Definition{Lang: c.lang, Body: c.body}), "x")[0]
		if r.Status != 500 || !strings.Contains(strings.SplitN(r.Error, "\n", 2)[0], c.want) {
			t.Errorf("%s: status %d, error %q: want 500, %q", c.body, r.Status, r.Error, c.want)
		}
	}
}

// TestOnlyThePayloadThatKillsFails has one payload of a batch kill the process: the others are done.
func TestOnlyThePayloadThatKillsFails(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	h := stored("t", handler.Definition{Lang: handler.Node, Body: "if (payload == 'die') process.exit(3); return payload"})
	for i, r := range do(t, p, h, "a", "die", "b", "die", "c") {
		if want := []int{200, 500, 200, 500, 200}[i]; r.Status != want {
			t.Errorf("payload %d: %+v, want status %d", i, r, want)
		}
	}
}

// TestResultsBeforeADeath has a process die right behind a result that takes longer to be read: that one counts.
func TestResultsBeforeADeath(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	h := stored("t", handler.Definition{Lang: handler.Python, Body: "import os\nif payload == 'die': os._exit(3)\nreturn payload * 60000"})
	for round := range 20 {
		for i, r := range do(t, p, h, "a", "die") {
			if want := []int{200, 500}[i]; r.Status != want {
				t.Errorf("round %d, payload %d: status %d, error %q, want status %d", round, i, r.Status, r.Error, want)
			}
		}
	}
}

func TestAProcessIsUsedAgainAndReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	d := handler.Definition{Lang: handler.Node, Before: "n = 0", Body: "if (payload == 'throw') throw new Error('no'); return ++n", Options: handler.Options{Recycle: 3}}
	h := stored("t", d)
	got := ""
	for _, text := range []string{"", "", "", "", "throw", "", ""} {
		r := do(t, p, h, text)[0]
		got += fmt.Sprint(r.Status, string(r.Value), " ")
	}
	if want := "2001 2002 2003 2001 500 2001 2002 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	next := stored("t", d)
	next.Version, next.Definition.Body = 2, "return 'new'"
	if r := told(do(t, p, next, "x")[0]); r != `200 "new"` {
		t.Errorf("the new version: %s", r)
	}
}

func TestSecretsAndEnvironment(t *testing.T) {
	t.Setenv("HIDDEN", "x")
	p := newPool(t, func(c *runner.Config) {
		c.Secret = func(name string) (string, bool) { return "s3cret", name == "KEY" }
		c.Commands = map[string][]string{"x-upper": {"sed", "-n"}}
	})
	h := stored("t", handler.Definition{
		Lang: handler.Shell, Body: `printf '%s %s %s' "$KEY" "$COLOUR" "$HIDDEN" >&3`,
		Options: handler.Options{Secrets: []string{"KEY"}, Env: map[string]string{"COLOUR": "blue"}},
	})
	if r := told(do(t, p, h, "x")[0]); r != `200 "s3cret blue "` {
		t.Errorf("got %s", r)
	}
	upper := stored("u", handler.Definition{Lang: "x-upper", Body: "s/x/y/p"})
	if r := told(do(t, p, upper, "axa")[0]); r != "200  aya" {
		t.Errorf("a command by configuration: %s", r)
	}
}

// TestAColdFirstResult is the time of the first result of a handler that has no process.
func BenchmarkCold(b *testing.B) {
	p := newPool(b, nil)
	n := 0
	for b.Loop() {
		n++
		do(b, p, stored(fmt.Sprint("t", n), handler.Definition{Lang: handler.Node, Body: "return 1"}), "x")
	}
}

func BenchmarkWarm(b *testing.B) {
	p := newPool(b, nil)
	h := stored("t", handler.Definition{Lang: handler.Node, Body: "return 1", Options: handler.Options{Recycle: 1_000_000}})
	texts := make([]string, 100)
	do(b, p, h, texts...)
	b.ResetTimer()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range b.N / 400 {
				do(b, p, h, texts...)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// liar answers for its payloads without reading them.
const liar = `
import os, re, sys, time
os.write(3, b'{"id":"","status":200}\n')
text = b''
while not (found := re.search(rb'"id":"([^"]+)"', text)): text += os.read(0, 100)
id = found.group(1).decode()
for i in id, '':
    for stream in sys.stdout, sys.stderr: print('\0weir %s %s' % (sys.modules['__main__'].hello['token'], i), file=stream, flush=True)
os.write(3, b'{"id":"%s","status":200}\n{"id":"","status":200}\n' % id.encode())
time.sleep(1000)
`

// TestOneThatDoesNotReadHoldsNoPlace: of a process that answers as the runner's own code does, but reads nothing, others do not wait longer than its timeout.
func TestOneThatDoesNotReadHoldsNoPlace(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	h := stored("liar", handler.Definition{Lang: handler.Python, Before: liar, Body: "pass", Options: handler.Options{Timeout: handler.Duration(2 * time.Second)}})
	if r := do(t, p, h, strings.Repeat("x", 1<<20))[0]; r.Status != 200 { // it harms its own payload alone
		t.Errorf("%+v", r)
	}
	if r := told(do(t, p, stored("good", handler.Definition{Lang: handler.Node, Body: "return payload.length"}), "four")[0]); r != "200 4" {
		t.Errorf("another one: %s", r)
	}
}

// TestVariablesAreNotTheHelpers: what a handler sets does not reach the program that takes its rights away, which has more of them.
func TestVariablesAreNotTheHelpers(t *testing.T) {
	t.Parallel()
	p, dir := newPool(t, nil), t.TempDir()
	h := stored("t", handler.Definition{
		Lang: handler.Shell, Body: `printf %s "$LD_DEBUG" >&3`,
		Options: handler.Options{Env: map[string]string{"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": filepath.Join(dir, "debug")}},
	})
	if r := do(t, p, h, "x")[0]; r.Status != 200 || string(r.Value) != `"libs"` {
		t.Errorf("the handler itself: %+v", r)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) > 0 {
		t.Errorf("written outside of the sandbox: %v, %v", files, err)
	}
}
