package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// TestKilledRunsCountTheSame kills the program with SIGKILL, one to three times, each
// time at another moment, starts it again with the same arguments and wants what an
// undisturbed run prints.
func TestKilledRunsCountTheSame(t *testing.T) {
	t.Parallel()
	const lanes, runs = 4, 5
	program := filepath.Join(t.TempDir(), "wordcount")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("asking for GOROOT: %v", err)
	}
	var paths []string
	for _, dir := range []string{"bytes", "compress", "encoding", "go", "strings", "unicode"} {
		paths = append(paths, filepath.Join(strings.TrimSpace(string(root)), "src", dir))
	}
	start := time.Now()
	want, err := command(program, nil, paths).Output()
	if err != nil {
		t.Fatalf("undisturbed run: %v", err)
	}
	whole := time.Since(start)
	t.Logf("undisturbed run took %s: %.80s…", whole.Round(time.Millisecond), want)

	var killed atomic.Int64
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				url := redistest.Start(t).URL()
				rng := rand.New(rand.NewPCG(uint64(lane), 2026)) //nolint:gosec // the moments need no secrecy
				for n := range runs {
					args := []string{"-redis", url, "-tree", fmt.Sprintf("run-%d", n)}
					for range 1 + rng.IntN(3) {
						if killAfter(t, command(program, args, paths), time.Duration(rng.Int64N(int64(whole)))) {
							killed.Add(1)
						}
					}
					out, err := command(program, args, paths).Output()
					if err != nil {
						t.Fatalf("run %d, after its kills: %v\n%s", n, err, stderrOf(err))
					}
					if !bytes.Equal(out, want) {
						t.Errorf("run %d, after its kills, printed\n%swant\n%s", n, out, want)
					}
				}
			})
		}
	})
	if least := int64(lanes * runs / 2); killed.Load() < least {
		t.Errorf("only %d kills met a living program, want %d at least: the test shows nothing", killed.Load(), least)
	}
	t.Logf("%d runs, %d kills met a living program", lanes*runs, killed.Load())
}

func command(program string, args, paths []string) *exec.Cmd {
	cmd := exec.Command(program, append(append([]string{"-json"}, args...), paths...)...)
	cmd.Env = append(os.Environ(), "WEIR_REDIS_URL=")
	return cmd
}

// killAfter starts the program, kills it after the given time, and tells whether it was
// still at work.
func killAfter(t *testing.T, cmd *exec.Cmd, after time.Duration) bool {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	err := cmd.Wait()
	if err == nil {
		return false // it had ended
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the program ended by itself with an error: %v", err)
	}
	return true
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}
