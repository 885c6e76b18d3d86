// Package clients_test runs workers in other languages against a real server.
package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	weirapi "github.com/weirworks/weir/api"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const patience = 2 * time.Minute

// messagesEnv is how many messages TestThreeLanguages sends, in place of 3000; it may have that many milliseconds more for them.
const messagesEnv = "WEIR_CLIENTS_MESSAGES"

// server is the HTTP API with an engine of components beside it.
type server struct {
	*testing.T
	url string
}

func serve(t *testing.T) *server {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: redistest.Start(t).URL(), Namespace: redistest.Namespace(t), Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	workers := component.All(component.Policy{})
	cfg := weirapi.Config{Store: store}
	for _, w := range workers {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	handler, err := weirapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := worker.New(worker.Config{Store: store, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- engine.Run(ctx) }()
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	return &server{t, web.URL}
}

// ask sends a request whose answer is read into v, and returns its status.
func (s *server) ask(method, path string, body, v any) int {
	s.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			s.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, in)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	if v != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(raw, v); err != nil {
			s.Fatalf("%v: %s", err, raw)
		}
	}
	if v != nil && answer.StatusCode >= 300 {
		s.Logf("%s %s: %s", method, path, raw)
	}
	return answer.StatusCode
}

// do is ask, and demands that it went well.
func (s *server) do(method, path string, body, v any) {
	s.Helper()
	if v == nil {
		v = &json.RawMessage{}
	}
	if status := s.ask(method, path, body, v); status >= 300 {
		s.Fatalf("%s %s: status %d", method, path, status)
	}
}

// types waits until a type is registered.
func (s *server) types(names ...string) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var all []struct{ Type string }
		s.do("GET", "/v1/types", nil, &all)
		found := 0
		for _, t := range all {
			for _, name := range names {
				if t.Type == name {
					found++
				}
			}
		}
		if found == len(names) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the workers of %v do not come", names)
		}
	}
}

// program is one in another language, which is started again when it is killed.
type program struct {
	t    *testing.T
	args []string
	mu   sync.Mutex
	cmd  *exec.Cmd
	said bytes.Buffer
	over bool
}

// python and node run a program on a server until the test ends.
func (s *server) python(file string) *program { return s.start("python3", file) }

func (s *server) node(file string) *program {
	s.Helper()
	dir := s.TempDir()
	for _, f := range []string{"typescript/weir.ts", file} { // as tsc would, older nodes know no types
		text, err := os.ReadFile(f)
		if err != nil {
			s.Fatal(err)
		}
		out := api.Transform(string(text), api.TransformOptions{Loader: api.LoaderTS, Target: api.ES2022})
		if len(out.Errors) > 0 {
			s.Fatalf("%s: %v", f, out.Errors)
		}
		code := strings.ReplaceAll(string(out.Code), "./weir.ts", "./weir.mjs")
		name := strings.TrimSuffix(filepath.Base(f), ".ts") + ".mjs"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return s.start("node", filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".ts")+".mjs"))
}

func (s *server) start(args ...string) *program {
	s.Helper()
	p := &program{t: s.T, args: append(args, s.url)}
	p.again()
	s.Cleanup(func() {
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
		p.kill()
		if s.Failed() {
			s.Logf("%v said:\n%s", p.args, &p.said)
		}
	})
	return p
}

func (p *program) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("%s is missing: scripts/install-tools.sh installs it: %v", p.args[0], err)
	}
}

// kill ends it with SIGKILL.
func (p *program) kill() {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// killed kills the programs one after the other at random, and starts them again, until stop.
func killed(stop <-chan struct{}, every time.Duration, all ...*program) (kills int) {
	for {
		select {
		case <-stop:
			return kills
		case <-time.After(every/2 + rand.N(every)):
		}
		p := all[rand.N(len(all))]
		p.kill()
		p.again()
		kills++
	}
}

// A graph of a component, a worker in Python and one in TypeScript; both are killed again and again. Nothing is lost, done twice, or
// out of order.
func TestThreeLanguages(t *testing.T) {
	n, batch := 3000, 250
	if text, ok := os.LookupEnv(messagesEnv); ok {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n%batch != 0 {
			t.Fatalf("%s is %q: use a multiple of %d", messagesEnv, text, batch)
		}
	}
	limit := patience + time.Duration(n)*time.Millisecond
	began := time.Now()
	s := serve(t)
	py, ts := s.python("python/example.py"), s.node("typescript/example.ts")
	s.types("Double", "Square")
	s.do("POST", "/v1/graphs", map[string]any{"alias": "sums", "graph": `
weir: 1
name: sums
nodes:
  plus: {type: map, args: {expr: it + 1}}
  double: {type: Double}
  square: {type: Square}
edges:
  - plus.out -> double.in
  - double.out -> square.in
inputs: {n: plus.in}
outputs: {r: square.out}
`}, nil)
	stop, over := make(chan struct{}), make(chan int, 1)
	go func() { over <- killed(stop, 700*time.Millisecond, py, ts) }()
	for from := 0; from < n; from += batch {
		var numbers []int
		for i := range batch {
			numbers = append(numbers, from+i)
		}
		s.do("POST", "/v1/jobs/sums/ports/in/n/messages", map[string]any{"messages": numbers}, nil)
		time.Sleep(200 * time.Millisecond)
	}
	if status := s.ask("POST", "/v1/jobs/sums/ports/in/n/close", nil, nil); status != http.StatusNoContent {
		t.Fatalf("close: status %d", status)
	}
	var waited struct {
		Reached bool
		Error   string
	}
	for deadline := began.Add(limit); !waited.Reached && time.Now().Before(deadline); {
		s.do("GET", "/v1/jobs/sums/wait?for=completed&timeout=10s", nil, &waited)
		if waited.Error != "" {
			t.Fatal(waited.Error)
		}
	}
	close(stop)
	t.Logf("%d messages, %d kills, %s", n, <-over, time.Since(began).Round(time.Second))
	if !waited.Reached {
		t.Fatalf("the graph is not completed after %s", limit)
	}
	next := 0
	for next < n {
		var got struct{ Messages []struct{ Data float64 } }
		s.do("POST", "/v1/jobs/sums/ports/out/r/take?limit=1000", nil, &got)
		if len(got.Messages) == 0 {
			break
		}
		for _, m := range got.Messages {
			want := float64(4*(next+1)) * float64(next+1)
			if m.Data != want {
				t.Fatalf("result %d is %v, want %v", next, m.Data, want)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d results, want %d", next, n)
	}
	for _, name := range []string{"double", "square"} { // each run's state is committed with what it wrote
		var seen json.RawMessage
		s.do("GET", "/v1/jobs/sums%2F"+name+"/state", nil, &seen)
		if want := fmt.Sprintf(`"seen":%d`, n); !strings.Contains(string(seen), want) {
			t.Errorf("the state of %s is %s, want %s", name, seen, want)
		}
		var info struct{ Progress struct{ Done int } }
		if s.do("GET", "/v1/jobs/sums%2F"+name, nil, &info); info.Progress.Done != n {
			t.Errorf("%s says that it is at %d, want %d", name, info.Progress.Done, n)
		}
	}
}
