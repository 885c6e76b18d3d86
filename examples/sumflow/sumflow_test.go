package main

import (
	"bytes"
	"context"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
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

// sumflow runs the program.
func sumflow(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func prints(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := sumflow(t.Context(), args...)
	if code != exitOK || stdout != want || stderr != "" {
		t.Errorf("%.99q: exit code %d, stdout %.99q, stderr %q, want only %.99q on stdout", args, code, stdout, stderr, want)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	prints(t, "11\n", "5", "6")
	prints(t, "7\n", "7")
	prints(t, "-1\n", "-7", "6")
	prints(t, "1\n", "--", "-5", "+6")
	prints(t, "0\n", "-0")
	big := strings.Repeat("9", 5000)
	prints(t, "1"+strings.Repeat("0", 5000)+"\n", big, "1")
	prints(t, "18446744073709551616\n", "9223372036854775807", "9223372036854775807", "2")
}

// More numbers than a job sees of a port at once.
func TestMany(t *testing.T) {
	t.Parallel()
	var args []string
	for i := range 2500 {
		args = append(args, strconv.Itoa(i))
	}
	prints(t, "3123750\n", args...)
}

func TestRedis(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	prints(t, "11\n", "--redis", url, "5", "6")
	prints(t, "-1000000000000000000000\n", "--redis", url, "-1000000000000000000001", "1")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("WEIR_REDIS_URL", "unix://"+filepath.Join(t.TempDir(), "none"))
	if code, _, stderr := sumflow(t.Context(), "1"); code != exitError || !strings.Contains(stderr, "cannot reach Redis") {
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
		{2, "no NUMBER", nil},
		{2, `"x" is not a whole number`, []string{"5", "x"}},
		{2, `"" is not a whole number`, []string{""}},
		{2, `"1.5" is not`, []string{"1.5"}},
		{2, `"-1.5" is not`, []string{"-1.5"}},
		{2, `"0x10" is not`, []string{"0x10"}},
		{2, `"1_000" is not`, []string{"1_000"}},
		{2, `"1\n2" is not`, []string{"1\n2"}},
		{2, "see sumflow --help", []string{"--wat", "1"}},
		{2, "see sumflow --help", []string{"-x", "1"}},
		{1, "unknown scheme", []string{"--redis", "http://localhost", "1"}},
	} {
		code, stdout, stderr := sumflow(t.Context(), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "sumflow: ") {
			t.Errorf("%q: stderr must be one line that begins with sumflow: %q", c.args, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := sumflow(t.Context(), "-h")
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "sumflow 5 6") || !strings.Contains(stdout, "--redis URL") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stdout, stderr := sumflow(ctx, "5", "6"); code != exitError || stdout != "" || stderr != "sumflow: stopped\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// The parent makes the child and sleeps; the child adds; the parent wakes and passes on.
func TestFlow(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Flow{}, &Sum{})
	h := e.StartWorker(&Flow{Numbers: []*big.Int{big.NewInt(5), big.NewInt(6)}})
	want := func(parent, child statemachine.Status) {
		t.Helper()
		if p, c := e.Status(h), e.Status(e.Child(h, "sum")); p != parent || c != child {
			t.Errorf("the parent is %s and the child %s, want %s and %s", p, c, parent, child)
		}
	}
	e.RunNext()
	want(statemachine.Suspended, statemachine.Queued)
	e.RunNext()
	want(statemachine.Queued, statemachine.Completed)
	e.RunNext()
	want(statemachine.Completed, statemachine.Completed)
	if err := h.Run(t.Context()); err != nil { // once more than it must
		t.Fatal(err)
	}
	e.RunUntilIdle()
	want(statemachine.Completed, statemachine.Completed)
	if got := weirtest.Drain[int](e, h, "out"); len(got) != 1 || got[0] != 11 {
		t.Errorf("the parent wrote %v", got)
	}
}

func TestChildThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Flow{}, &Sum{})
	h := e.StartWorker(&Flow{})
	e.RunNext()
	if err := e.Child(h, "sum").Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if info := e.Info(h); info.Status != statemachine.Failed || !strings.HasPrefix(info.Reason, "job sum is terminated") {
		t.Errorf("the parent is %s: %s", info.Status, info.Reason)
	}
}

// Numbers alone do not make the child add.
func TestSumWaits(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Sum{})
	h := e.StartWorker(&Sum{})
	e.Feed(h, "in", 1, 2)
	e.RunUntilIdle()
	if got := e.Status(h); got != statemachine.Suspended {
		t.Errorf("the job is %s", got)
	}
	e.Feed(h, "in", 3)
	e.Feed(h, "ready", true)
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "total"); len(got) != 1 || got[0] != 6 {
		t.Errorf("the sum is %v", got)
	}
}
