//go:build unix

package component_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/weirtest"
)

func TestExec(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		x    Exec
		in   string
		out  string
		err  string
		fail string
	}{
		"text":      {x: Exec{Program: "cat"}, in: `{"a":1} "x"`, out: `"{\"a\":1}" "\"x\""`},
		"as text":   {x: Exec{Program: "cat", Input: AsText}, in: `"x" 5`, out: `"x" "5"`},
		"json":      {x: Exec{Program: "cat", Output: AsJSON}, in: `{"a":12345678901234567890}`, out: `{"a":12345678901234567890}`},
		"lines":     {x: Exec{Program: "sh", Args: []string{"-c", `printf 'a\r\n\nb'`}, Output: AsLines}, in: `1`, out: `"a" "" "b"`},
		"no shell":  {x: Exec{Program: "echo", Args: []string{"$HOME;", "`id`"}}, in: `1`, out: "\"$HOME;_`id`\\n\""},
		"env":       {x: Exec{Program: "sh", Args: []string{"-c", "echo $A$SECRET$WEIR_IDEMPOTENCY_KEY | wc -c"}, Env: map[string]string{"A": "x"}}, in: `1`, out: `"34\n"`},
		"not json":  {x: Exec{Program: "echo", Output: AsJSON}, in: `1`, fail: "wrong encoding"},
		"not text":  {x: Exec{Program: "sh", Args: []string{"-c", `printf '\377'`}}, in: `1`, fail: "not valid UTF-8"},
		"code":      {x: Exec{Program: "sh", Args: []string{"-c", "echo no >&2; exit 3"}, OnError: OnErrorPort}, in: `1`, err: `{"error":"sh:_exit_status_3:_no","data":1}`},
		"too much":  {x: Exec{Program: "sh", Args: []string{"-c", "yes"}}, in: `1`, fail: "sh: it printed more than 1048576 bytes"},
		"forbidden": {x: Exec{Program: "ls"}, in: `1`, fail: `not allowed by the policy: program "ls"`},
		"a path":    {x: Exec{Program: "/bin/cat"}, in: `1`, fail: `not allowed by the policy: program "/bin/cat"`},
		"missing":   {x: Exec{Program: "no-such-program"}, in: `1`, fail: "executable file not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, All(Policy{Programs: []string{"cat", "sh", "echo", "no-such-program"}})...)
			h := e.StartWorker(&c.x)
			e.Feed(h, "in", raws(list(c.in))...)
			e.RunUntilIdle()
			if fs := e.Failures(h); len(fs) > 0 {
				if c.fail == "" || !strings.Contains(fs[0].Error, c.fail) {
					t.Errorf("failed with %q, want %q", fs[0].Error, c.fail)
				}
				return
			}
			got := outputs(t, h, "out", "err")
			flat := func(items []string) string { return strings.ReplaceAll(strings.Join(items, "\x00"), " ", "_") }
			out, errs := strings.ReplaceAll(flat(got["out"]), "\x00", " "), flat(got["err"])
			if out != c.out || errs != c.err || c.fail != "" {
				t.Errorf("got %s and %s, want %s and %s", out, errs, c.out, c.err)
			}
		})
	}
}

func TestExecByDefault(t *testing.T) {
	t.Parallel()
	if _, failure := play(t, &Exec{Program: "cat"}, stream{"in": list("1")}); !strings.Contains(failure, "not allowed by the policy") {
		t.Errorf("got %q", failure)
	}
}

// TestExecKills: when its time is over, a program is killed with all that it started.
func TestExecKills(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	e := weirtest.New(t, All(Policy{Programs: []string{"sh"}, Root: root})...)
	h := e.StartWorker(&Exec{Program: "sh", Args: []string{"-c", "(sleep 1; touch survived) & sleep 60"}, Timeout: Duration(100 * time.Millisecond)})
	e.Feed(h, "in", 1)
	begin := time.Now()
	e.RunUntilIdle()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if fs := e.Failures(h); len(fs) != 1 || fs[0].Error != "sh: no end after 100ms" {
		t.Errorf("got %v", fs)
	}
	time.Sleep(1500 * time.Millisecond) // there is nothing to wait for: it must not happen
	if _, err := os.Stat(filepath.Join(root, "survived")); err == nil {
		t.Error("a program that it started went on")
	}
}

// Engines with different policies are different to jobs that one of them may not run: TestElsewhere of worker shows what becomes of these.
func TestExecSettings(t *testing.T) {
	t.Parallel()
	settings := func(p Policy) string {
		for _, w := range All(p) {
			if x, ok := w.(*Exec); ok {
				return x.Settings()
			}
		}
		t.Fatal("no exec")
		return ""
	}
	all := map[string]bool{}
	for _, p := range []Policy{{}, {Programs: []string{"cat"}}, {Programs: []string{"cat", "sh"}}, {Programs: []string{"cat sh"}}, {Root: "/tmp"}} {
		all[settings(p)] = true
	}
	if len(all) != 5 || !all[settings(Policy{Root: "/tmp"})] {
		t.Errorf("settings %v", all)
	}
	e := weirtest.New(t, All(Policy{})...)
	h := e.StartWorker(&Exec{Program: "cat"})
	e.Feed(h, "in", raws([]string{"1"})...)
	e.RunUntilIdle()
	if fs := e.Failures(h); len(fs) != 1 || !strings.Contains(fs[0].Error, "not allowed by the policy") {
		t.Errorf("without another engine: %v", fs)
	}
}
