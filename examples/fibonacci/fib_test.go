package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(m.Run())
}

// fibonacci runs the program.
func fibonacci(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func prints(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := fibonacci(t.Context(), args...)
	if code != exitOK || stdout != want || stderr != "" {
		t.Errorf("%q: exit code %d, stdout %q, stderr %q, want only %q on stdout", args, code, stdout, stderr, want)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	for n, want := range map[string]string{"0": "0\n", "1": "1\n", "2": "1\n", "3": "2\n", "007": "13\n", "10": "55\n"} {
		prints(t, want, n)
	}
	if !testing.Short() {
		prints(t, "144\n", "12")
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	prints(t, "0\n", "--redis", url, "0")
	prints(t, "144\n", "--redis", url, "12")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("WEIR_REDIS_URL", "unix://"+filepath.Join(t.TempDir(), "none"))
	if code, _, stderr := fibonacci(t.Context(), "1"); code != exitError || !strings.Contains(stderr, "cannot reach Redis") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	prints(t, "1\n", "--redis", "", "1") // an empty URL asks for the embedded one
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "give one number", nil},
		{2, "give one number", []string{"1", "2"}},
		{2, `N is "x"`, []string{"x"}},
		{2, `N is ""`, []string{""}},
		{2, `N is "1.5"`, []string{"1.5"}},
		{2, `N is "1\n2"`, []string{"1\n2"}},
		{2, "none below 0", []string{"--", "-1"}},
		{2, "N is 21; at most 20, because every number is a job with two children", []string{"21"}},
		{2, "at most 20", []string{strings.Repeat("9", 1000)}},
		{2, "see fibonacci --help", []string{"--wat", "1"}},
		{1, "unknown scheme", []string{"--redis", "http://localhost", "1"}},
	} {
		code, stdout, stderr := fibonacci(t.Context(), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "fibonacci: ") {
			t.Errorf("%q: stderr must be one line that begins with fibonacci: %q", c.args, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := fibonacci(t.Context(), "-h")
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "fibonacci 12") || !strings.Contains(stdout, "--redis URL") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stdout, stderr := fibonacci(ctx, "12"); code != exitError || stdout != "" || stderr != "fibonacci: stopped\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// The tree has the jobs that the help promises, all of them completed.
func TestTree(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Fib{})
	h := e.StartWorker(&Fib{N: 7})
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "out"); len(got) != 1 || got[0] != 13 {
		t.Errorf("fib(7) = %v", got)
	}
	tree, err := h.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) != 41 {
		t.Errorf("the tree has %d jobs, want 41", len(tree))
	}
	for _, i := range tree {
		if i.Status != statemachine.Completed {
			t.Errorf("job %s is %s: %s", i.Name, i.Status, i.Reason)
		}
	}
}

// A job that runs once more than it must writes nothing more.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Fib{})
	h := e.StartWorker(&Fib{N: 3})
	e.RunUntilIdle()
	if err := h.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "out"); len(got) != 1 || got[0] != 2 || e.Status(h) != statemachine.Completed {
		t.Errorf("fib(3) = %v, %s", got, e.Status(h))
	}
}

func TestChildThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Fib{})
	h := e.StartWorker(&Fib{N: 3})
	e.RunNext()
	if err := e.Child(h, "fib_2").Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if info := e.Info(h); info.Status != statemachine.Failed || !strings.HasPrefix(info.Reason, "job fib_2 is terminated") {
		t.Errorf("the parent is %s: %s", info.Status, info.Reason)
	}
}
