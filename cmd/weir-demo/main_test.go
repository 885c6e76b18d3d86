//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/enginetest"
)

// TestMain runs the program in place of the tests where one of them has started this binary as such.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "weir-demo" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestDemo: it serves a page and a shop that works, with a redis-server and without, and ends with code 0. That the page's address is taken
// hinders none of them: the two run at once.
func TestDemo(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"with a redis-server": os.Getenv("PATH"), "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			enginetest.Check(t, err)
			var stderr bytes.Buffer
			cmd := &exec.Cmd{Path: self, Args: []string{"weir-demo"}, Stderr: &stderr, Env: append(os.Environ(), "PATH="+path, "XDG_CACHE_HOME="+t.TempDir(), "HOME="+t.TempDir())}
			out, err := cmd.StdoutPipe()
			enginetest.Check(t, err)
			enginetest.Check(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // if a check ended the test
			lines := bufio.NewReader(out)
			page, err := lines.ReadString('\n')
			if page = strings.TrimSpace(page); err != nil || !strings.HasPrefix(page, "http://127.0.0.1:") {
				t.Fatalf("it printed %q, %v: %s", page, err, stderr.String())
			}
			guide := make(chan string, 1)
			go func() { all, _ := io.ReadAll(lines); guide <- string(all) }()

			resp, err := http.Get(page) //nolint:noctx,gosec // its own
			enginetest.Check(t, err)
			html, err := io.ReadAll(resp.Body)
			if enginetest.Check(t, err); resp.StatusCode != http.StatusOK || !bytes.Contains(html, []byte("<title>")) {
				t.Errorf("the page: %s %.200s", resp.Status, html)
			}
			enginetest.Check(t, resp.Body.Close())
			store, err := httpstore.Open(t.Context(), httpstore.Config{URL: page})
			enginetest.Check(t, err)
			defer store.Close()
			enginetest.Until(t, "orders are shipped", func() bool {
				jobs, err := client.New(store).Find(t.Context(), "demo/parcels/ship")
				if err != nil {
					return false
				}
				state, err := jobs.State(t.Context())
				return err == nil && len(state["shipped"]) > 0
			})
			stock, err := client.New(store).Find(t.Context(), "stocktake")
			enginetest.Check(t, err)
			enginetest.Until(t, "the trigger runs", func() bool {
				i, err := stock.Info(t.Context())
				return err == nil && i.Steps > 0
			})
			resp, err = http.Get(page + "/readyz") //nolint:noctx,gosec // its own
			if enginetest.Check(t, err); resp.StatusCode != http.StatusOK {
				t.Errorf("/readyz: %s", resp.Status)
			}
			enginetest.Check(t, resp.Body.Close())
			resp, err = http.Get(page + "/metrics") //nolint:noctx,gosec // its own
			enginetest.Check(t, err)
			counts, err := io.ReadAll(resp.Body)
			if enginetest.Check(t, err); !bytes.Contains(counts, []byte("\nweir_runs_total{")) {
				t.Errorf("/metrics: %s %.200s", resp.Status, counts)
			}
			enginetest.Check(t, resp.Body.Close())
			end := syscall.SIGHUP // as a terminal that is closed sends it
			if signal.Ignored(end) {
				end = syscall.SIGTERM // this test runs under nohup, and so does what it starts
			}
			enginetest.Check(t, cmd.Process.Signal(end))
			said := <-guide
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended: %v: %s", err, stderr.String())
			}
			if want := map[bool]string{true: "kill -9", false: "There is no redis-server here"}[path != ""]; !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		})
	}
}

// TestAddress: nobody on another machine reaches a page that asks for no token.
func TestAddress(t *testing.T) {
	t.Parallel()
	for addr, fine := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false, ":0": false} {
		f := settings{addr: addr}
		l, err := f.listen(t.Context(), io.Discard)
		if fine != (err == nil) {
			t.Errorf("%s: %v", addr, err)
		}
		if err == nil {
			_ = l.Close()
		} else if !strings.Contains(err.Error(), "other machines") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestFlags: what is typed wrong starts nothing.
func TestFlags(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	enginetest.Check(t, err)
	for want, args := range map[string][]string{"there are flags only": {"now"}, "-dta": {"--dta", "x"}} {
		cmd := &exec.Cmd{Path: self, Args: append([]string{"weir-demo"}, args...), Env: append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())}
		out, err := cmd.CombinedOutput()
		if end := (*exec.ExitError)(nil); !errors.As(err, &end) || end.ExitCode() != exitUsage || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}
