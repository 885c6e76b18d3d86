package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	logging.Disable()                        // of servers that tests kill
	if filepath.Base(os.Args[0]) != "weir" { // the tests, not the program that they run
		for _, name := range []string{"WEIR_REDIS_URL", "WEIR_NAMESPACE", "WEIR_CONTEXT", "WEIR_KEYS", "WEIR_SERVER", "WEIR_TOKEN", "WEIR_TOKEN_FILE"} {
			_ = os.Unsetenv(name)
		}
		_ = os.Setenv("WEIR_CONFIG", filepath.Join(os.TempDir(), "weir has no contexts.yaml"))
	}
	testscript.Main(m, map[string]func(){"weir": main})
}

type resize struct {
	Width int
	In    port.In[string]
	Thumb port.Out[string]
}

func (resize) JobType() string { return "Resize" }

// TestScripts runs testdata/*.txt against a Redis that holds one tree, named album.
func TestScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	durable := redistest.Start(t, "--appendonly", "yes")
	store := enginetest.Open(t, redisstore.Config{URL: server.URL()})
	h, err := client.New(store).Start(t.Context(), job.Single(&resize{Width: 64}, ""), job.Alias("album"))
	enginetest.Check(t, err)
	enginetest.Check(t, h.Write(context.WithoutCancel(t.Context()), "in", "a.png", "b.png"))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"until": awaited, "capture": capture, "register": register},
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", server.URL())
			env.Setenv("DURABLE", durable.URL())
			env.Setenv("EMPTY", strings.TrimSuffix(server.URL(), "/0")+"/5") // for act.txt alone
			env.Setenv("SERVER", strings.TrimSuffix(server.URL(), "/0"))     // for jobs.txt alone with /6, for bulk.txt with /7
			env.Setenv("ALBUM", string(h.ID()))
			env.Setenv("HOME", os.TempDir())
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command takes a second with the race detector
			env.Setenv("WEIR_CONFIG", filepath.Join(env.WorkDir, "config", "contexts.yaml"))
			return nil
		},
	})
}

// awaited runs a program again and again until what it prints matches: until 'regexp' program args…
func awaited(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until regexp program args...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no match for %s after a minute: %v\n%s%s", args[0], err, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	}
}

// capture puts what the last program printed into a variable: capture NAME.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// register registers components as a worker does, for the Redis of the environment: register [NAMESPACE].
func register(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: register [NAMESPACE]")
	}
	ts.Check(registerComponents(context.Background(), redisstore.Config{URL: ts.Getenv("WEIR_REDIS_URL"), Namespace: strings.Join(args, "")}))
}

func registerComponents(ctx context.Context, cfg redisstore.Config) error {
	store, err := redisstore.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{Store: store, Workers: component.All(component.Policy{})})
	if err != nil {
		return err
	}
	return engine.Register(ctx)
}
