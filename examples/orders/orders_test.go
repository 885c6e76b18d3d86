package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// mainEnv makes the test binary the program.
const mainEnv = "ORDERS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// free returns an address that nobody listens to.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// redis starts a server on a free port and returns its URL.
func redis(t *testing.T) string {
	t.Helper()
	address := free(t)
	_, port, _ := strings.Cut(address, ":")
	server := exec.Command("redis-server", "--port", port, "--save", "", "--appendonly", "yes", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	url := "redis://" + address
	until(t, "redis-server answers", func() bool {
		store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url, Namespace: "probe"})
		if err == nil {
			_ = store.Close()
		}
		return err == nil
	})
	return url
}

func until(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !fn(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// program is the program as a process, with its worker processes in a group of its own.
type program struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func start(t *testing.T, url string, n int) *program {
	t.Helper()
	return launch(t, "--redis", url, "--orders", strconv.Itoa(n), "--workers", "2", "-o", "json")
}

func launch(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), mainEnv+"=1")
	p.Stdout, p.Stderr = &p.out, &p.err
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) })
	return p
}

// result waits for the end of the program, and returns what it printed: one JSON object and no more.
func (p *program) result(t *testing.T) Totals {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.err.String())
	}
	d := json.NewDecoder(&p.out)
	d.DisallowUnknownFields()
	var all Totals
	if err := d.Decode(&all); err != nil || strings.TrimSpace(p.out.String()) != "" {
		t.Fatalf("standard output is not one JSON object: %v", err)
	}
	all.Seconds = 0
	return all
}

// Whatever dies, and whenever: what became of the orders in the end is what it would have been.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	const n = 3000
	url, want := redis(t), expected(n)
	for round := range 6 {
		p := start(t, url, n)
		time.Sleep(300*time.Millisecond + rand.N(1200*time.Millisecond)) // when it dies is what this is about
		switch round % 3 {
		case 0: // all of its processes
			_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		case 1: // the one that takes orders: the others end by themselves
			_ = p.Process.Kill()
		case 2: // a worker process, and then it
			pids, _ := exec.Command("pgrep", "-P", strconv.Itoa(p.Process.Pid)).Output()
			for pid := range strings.FieldsSeq(string(pids)) {
				id, _ := strconv.Atoi(pid)
				_ = syscall.Kill(id, syscall.SIGKILL)
				break
			}
			time.Sleep(rand.N(500 * time.Millisecond))
			_ = p.Process.Kill()
		}
		_ = p.Wait()
	}
	for range 2 { // it goes on, and then there is nothing more to do
		if got := start(t, url, n).result(t); got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	}
	approves(t, url, n, want)
	inOrder(t, url, want.Notified+2)
}

func open(t *testing.T, url string) *client.Handle {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url, Namespace: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h, err := client.New(store).Find(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// approves approves the first order that waits, twice: it is shipped once.
func approves(t *testing.T, url string, n int, want Totals) {
	t.Helper()
	h := open(t, url)
	for i := range n {
		o := orderOf(i)
		if o.Cents <= limit || o.Quantity < 1 || o.Item == soldOut {
			continue
		}
		if err := h.Write(t.Context(), "decisions", Decision{i, true}, Decision{i, true}); err != nil {
			t.Fatal(err)
		}
		want.Waiting--
		want.Shipped++
		want.Cents += o.Cents
		want.Notified += 2
		break
	}
	address := free(t)
	p := launch(t, "work", "--redis", url, "--metrics", address)
	d, err := openDesk(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the approved order is shipped", func() bool {
		all, _, err := d.totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all.Orders = n
		return *all == want
	})
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !bytes.Contains(text, []byte(`namespace="orders"`)) {
		t.Errorf("metrics: %v, %.500s", err, text)
	}
	_ = p.Process.Signal(syscall.SIGTERM) // it drains
	if err := p.Wait(); err != nil {
		t.Errorf("a worker process that was told to end: %v\n%s", err, p.err.String())
	}
}

// inOrder wants the notices of all customers to be numbered without gaps.
func inOrder(t *testing.T, url string, notices int) {
	t.Helper()
	h, sum := open(t, url), 0
	seen := map[string]bool{}
	for i := range 2 {
		one, err := h.Child(t.Context(), fmt.Sprintf("notify_%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		state, err := one.State(t.Context(), "sent")
		if err != nil {
			t.Fatal(err)
		}
		var sent map[string]int
		if err := json.Unmarshal(state["sent"], &sent); err != nil {
			t.Fatal(err)
		}
		for customer, n := range sent {
			if sum += n; seen[customer] {
				t.Errorf("two jobs tell %s", customer)
			}
			seen[customer] = true
		}
	}
	if sum != notices {
		t.Errorf("customers have %d notices, want %d", sum, notices)
	}
}

// The service refuses what is no list of orders, and takes the same request once.
func TestIngest(t *testing.T) {
	t.Parallel()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h, err := client.New(store).Start(t.Context(), shop(), job.EnginesLater())
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDesk(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body, key string
		status    int
		came      int
	}{
		{`{"id":1}`, "a", http.StatusBadRequest, 0},
		{`[{"id":1}]`, "", http.StatusUnprocessableEntity, 0},
		{`[{"id":1},{"id":2}]`, "a", http.StatusAccepted, 2},
		{`[{"id":1},{"id":2}]`, "a", http.StatusAccepted, 2},
		{`[{"id":3}]`, "b", http.StatusAccepted, 3},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(c.body))
		req.Header.Set("Idempotency-Key", c.key)
		w := httptest.NewRecorder()
		ingest(h).ServeHTTP(w, req)
		_, came, err := d.totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w.Code != c.status || came != c.came {
			t.Errorf("%s with key %q: %d, %s; %d orders came", c.body, c.key, w.Code, w.Body, came)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Setenv("WEIR_REDIS_URL", "")
	for line, want := range map[string]string{
		"":                              "no Redis given",
		"--redis redis://x -o xml":      `-o "xml" is not known`,
		"--redis redis://x --orders -1": "0 or more",
	} {
		err := run(context.Background(), strings.Fields(line), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
