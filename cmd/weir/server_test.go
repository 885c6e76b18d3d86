package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// behind serves the namespace of a Redis and returns the URL of the server.
func behind(t *testing.T, url string, configure func(*api.Config)) (address string, store *redisstore.Store) {
	t.Helper()
	store = enginetest.Open(t, redisstore.Config{URL: url})
	cfg := api.Config{Store: store}
	if configure != nil {
		configure(&cfg)
	}
	handler, err := api.New(cfg)
	enginetest.Check(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		_ = handler.Close()
		server.Close()
	})
	return server.URL, store
}

// now are times that go on between two looks.
var now = regexp.MustCompile(`\d+(\.\d+)?(ms|s|m)\b|"(seen|uptime_ms|latency_ms|commands_per_second|memory_used|clients|keys|used|late|oldest)[a-z_]*": ?[^,\n]*|\b[\d.,]+ ?(MB|KB|MiB|KiB|GB|B|/s)|20\d\d-\d\d-\d\dT[\d:.]+Z|at (http|redis)://\S+|[\d,]+ commands/s, \d+ clients|looked at later(, \d+ of them late)?|"finding": "[^"]*"`)

// TestThroughServer: each command does through a server what it does beside Redis.
func TestThroughServer(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).URL()
	shop(t, redis)
	weir(t, redis, "send", "one", "in", "1", "2", "3", "4")
	enginetest.Check(t, registerComponents(t.Context(), redisstore.Config{URL: redis}))
	address, store := behind(t, redis, nil)
	enginetest.Check(t, store.Register(t.Context(), []job.TypeInfo{{Type: "gone", Queue: job.DefaultQueue}}))
	dead := moaning(t, redis, "1", "2")
	call := func(where, url, line string) (string, int) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{where, url}, strings.Fields(line)...), &stdout, &stderr)
		return stdout.String() + stderr.String(), code
	}
	acts := []string{
		`create map --args {"expr":"it"} --alias kid`, "send kid in 5 6", "create --graph testdata/sum.yaml --alias sums", "patch sums testdata/sum.yaml", "read kid in", "run one", "state set one a=1", "state unset one a", "state set one b=2", "alias one uno",
		"adopt one kid kid", "disown one kid", "lock kid --ttl 1h", "unlock kid --force", "priority kid 600", "lock kid --ttl 1h",
		"dead edit moaner " + dead[0] + " in=1", "dead requeue moaner --yes", "queue pause default", "queue limit default 3", "types forget gone",
		`trigger add --type map --args {"expr":"it"} --alias hook`, "trigger change hook --parallel 2", "trigger fire hook", "trigger pause hook", "trigger resume hook",
		"retention --failed 60d", "publish /files/new 1", "retry --tree one", "fail one --reason enough", "retry one --in 1h --priority 9 --rename uno", "terminate one",
	}
	for _, line := range acts {
		if out, code := call("--server", address, line); code != 0 {
			t.Errorf("weir %s: exit code %d, %s", line, code, out)
		}
	}
	looks := []string{
		"jobs", "jobs --all", "jobs --count", "jobs -o json", "jobs --all -o jsonl", "show one", "show one -o yaml", "show one -o json", "show kid", "show kid -o json",
		"tree one", "tree one -o json", "why one", "why kid", "why moaner", "ports one", "ports one -o json", "peek one in", "peek one in -o jsonl", "log one", "log one -o jsonl", "log kid", "trace one in 0",
		"types", "types -o json", "state get one", "dead list", "dead list -o jsonl", "dead show moaner " + dead[1], "queues", "queues --types", "limits", "limits -o json", "workers -o json",
		"stats", "retention", "trigger list -o json", "trigger show hook", "audit --limit 0", "wait uno --timeout 2s", "wait uno --timeout 1ns", "graph draw one", "doctor -o json",
		"show nobody", "send one inn 1", "peek one out2", "delete kid --yes", "send hook in 1 2",
	}
	for _, line := range looks {
		through, farCode := call("--server", address, line)
		beside, code := call("--redis", redis, line)
		if farCode != code || now.ReplaceAllString(through, "T") != now.ReplaceAllString(beside, "T") {
			t.Errorf("weir %s through a server: exit code %d\n%s\nbeside Redis: exit code %d\n%s", line, farCode, through, code, beside)
		}
	}
	for _, line := range []string{"trigger delete hook --yes", "dead discard moaner --yes", "queue resume default", "delete one --yes", "create map --from testdata/none.jsonl"} {
		_, _ = call("--server", address, line)
	}
	for line, why := range map[string]string{"worker": "docs/remote-workers.md", "acl reader": "weir token create", "serve": "a server", "trigger list --workkit x": "--redis URL"} {
		if out, code := call("--server", address, line); code != exitUsage || !strings.Contains(out, "beside Redis") || !strings.Contains(out, why) {
			t.Errorf("weir %s: exit code %d, %s", line, code, out)
		}
	}
	covered(t, slices.Concat(acts, looks), "retry", "dev", "demo", "worker", "serve", "token", "help", "man", "healthcheck", "top", "context", "acl", "check", "components", "completion", "schema", "next", "version", "run", "graph", "dead", "queue", "delete", "trigger", "handler", "init", "migrate")
}

// TestTokensThroughServer: an admin makes, lists and ends tokens of his tenant through a server, and nobody else does.
func TestTokensThroughServer(t *testing.T) {
	t.Parallel()
	address, store := behind(t, redistest.Start(t).URL(), func(c *api.Config) { c.Tokens = true })
	dir := t.TempDir()
	for _, role := range []redisstore.TokenRole{redisstore.TokenAdmin, redisstore.TokenWork} {
		text, _, err := store.CreateToken(t.Context(), "ann", role, "", 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, string(role)), []byte(text), 0o600)
		}
		enginetest.Check(t, err)
	}
	if _, _, err := store.CreateToken(t.Context(), "zoe", redisstore.TokenRead, "other", 0); err != nil {
		t.Fatal(err)
	}
	call := func(wantCode int, who string, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(args, "--server", address, "--token-file", filepath.Join(dir, who)), &stdout, &stderr)
		if code != wantCode {
			t.Errorf("weir %q as %s: exit code %d, want %d\n%s%s", args, who, code, wantCode, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	var made tokenView
	text := call(0, "admin", "token", "create", "--role", "read", "--name", "grafana", "--ttl", "90d", "-o", "json")
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Tenant != "main" || made.Expires.IsZero() || made.Token == "" {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := store.Token(t.Context(), made.Token); err != nil {
		t.Errorf("the token that was made: %v", err)
	}
	if list := call(0, "admin", "token", "list"); !strings.Contains(list, "grafana") || strings.Contains(list, "zoe") {
		t.Errorf("list:\n%s", list)
	}
	if out := call(exitUsage, "admin", "token", "create", "--role", "read", "--tenant", "other"); !strings.Contains(out, "for tenant main alone") {
		t.Error(out)
	}
	if out := call(exitUsage, "admin", "token", "create", "--role", "king"); !strings.Contains(out, "role") {
		t.Error(out)
	}
	call(exitNotFound, "admin", "token", "revoke", "nobody")
	call(8, "work", "token", "list")
	call(8, "work", "token", "create", "--role", "admin")
	call(0, "admin", "token", "revoke", made.ID)
	if _, err := store.Token(t.Context(), made.Token); err == nil {
		t.Error("the token that was revoked is good")
	}
}

// TestRunThroughServer: weir run starts a graph on a server, feeds it and prints what it writes. Remote workers run the types that they
// have registered, also when weir run is beside Redis and runs the components itself.
func TestRunThroughServer(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).URL()
	address := servedAt(t, "--redis", redis)
	post := func(path, body string, v any) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		if v != nil {
			err = json.NewDecoder(answer.Body).Decode(v)
		}
		if err != nil || answer.StatusCode > 299 {
			t.Errorf("%s: %s, %v", path, answer.Status, err)
		}
	}
	post("/v1/workers", `{"types":[{"type":"Triple","inputs":[{"name":"in"}],"outputs":[{"name":"out"}]},{"type":"Idle","inputs":[{"name":"in"}]}]}`, nil)
	over := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			var got struct {
				Runs []struct {
					Run    string
					Inputs map[string]struct{ Messages []struct{ Data int } }
				}
			}
			post("/v1/runs/lease", `{"types":["Triple"],"wait":"200ms"}`, &got)
			for _, one := range got.Runs {
				in := one.Inputs["in"].Messages
				out := make([]int, len(in))
				for i, m := range in {
					out[i] = 3 * m.Data
				}
				text, _ := json.Marshal(out)
				post("/v1/runs/commit", fmt.Sprintf(`{"run":%q,"read":{"in":%d},"write":[{"port":"out","messages":%s}]}`, one.Run, len(in), text), nil)
			}
		}
	})
	defer func() { close(over); working.Wait() }()
	file := filepath.Join(t.TempDir(), "triple.yaml")
	const text = "weir: 1\nnodes:\n  add: {type: map, args: {expr: it + 1}}\n  triple: {type: Triple}\nedges: [add.out -> triple.in]\ninputs: {n: add.in}\noutputs: {o: triple.out}\n"
	enginetest.Check(t, os.WriteFile(file, []byte(text), 0o600))
	call := func(wantCode int, want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); code != wantCode || !strings.Contains(all, want) {
			t.Errorf("weir %q: exit code %d, want %d and %q\n%s", args, code, wantCode, want, all)
		}
	}
	call(0, "6\n9\n", "run", file, "--server", address, "--in", "n=1", "--in", "n=2")
	call(0, `"o": [`, "run", file, "--server", address, "--in", "n=1", "-o", "json")
	call(0, "6\n9\n", "run", file, "--redis", redis, "--in", "n=1", "--in", "n=2")
	call(exitUsage, "triple.type: there is no type \"Triple\"", "run", file, "--in", "n=1")
	call(exitUsage, "others run them", "run", file, "--server", address, "--allow-exec", "sh")
	call(exitUsage, "no such input", "run", file, "--server", address, "--in", "m=1")
	call(0, "", "trigger", "add", "--graph", file, "--alias", "tripler", "--server", address)
	call(0, "", "create", "--graph", file, "--alias", "tripled", "--server", address)
	call(0, "has this definition already", "patch", "tripled", file, "--server", address)
	call(5, "to end it: weir terminate", "run", file, "--server", address, "--in", "n=1", "--timeout", "1ms")
	call(5, "stays in Redis; nobody runs its jobs in queue private/", "run", file, "--redis", redis, "--in", "n=1", "--timeout", "1ms")
	lone := filepath.Join(t.TempDir(), "lone.yaml") // others run all of it
	enginetest.Check(t, os.WriteFile(lone, []byte("weir: 1\nnodes:\n  n: {type: Idle}\ninputs: {in: n.in}\n"), 0o600))
	call(5, "stays at redis", "run", lone, "--redis", redis, "--in", "in=1", "--timeout", "100ms")
	call(5, "to look:   weir tree", "run", lone, "--redis", redis, "--in", "in=1", "--timeout", "100ms")
}

// TestServerSettings: where the server and the token for it come from.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).URL()
	shop(t, redis)
	address, store := behind(t, redis, func(c *api.Config) { c.Tokens = true })
	text, _, err := store.CreateToken(t.Context(), "ann", redisstore.TokenRead, "", 0)
	enginetest.Check(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	enginetest.Check(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	try := func(wantCode int, want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); code != wantCode || !strings.Contains(all, want) || strings.Contains(all, text) {
			t.Errorf("weir %q: exit code %d, want %d\n%s", args, code, wantCode, all)
		}
	}
	try(0, "one", "show", "one", "--server", address, "--token-file", file)
	try(8, "weir token create", "show", "one", "--server", address)
	try(8, "role operate", "run", "one", "--server", address, "--token-file", file)
	try(exitUsage, "both given", "jobs", "--server", address, "--redis", redis)
	try(exitUsage, "namespace main", "jobs", "--server", address, "--token-file", file, "--namespace", "shop")
	try(0, "one", "show", "one", "--server", address, "--token-file", file, "--namespace", "main")
	try(exitUsage, "no such file", "jobs", "--server", address, "--token-file", filepath.Join(dir, "none"))
	try(exitUsage, "use one like http", "jobs", "--server", "redis://localhost")
	try(exitUnreachable, "cannot reach the server", "jobs", "--server", "http://127.0.0.1:1")
	try(exitUsage, "--keys", "jobs", "--server", address, "--token-file", file, "--keys", fmt.Sprint(file))
}
