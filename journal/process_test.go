package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
)

// processEnv is set in processes that write and move until they are killed: directory, URL and namespace.
const processEnv = "WEIR_TEST_JOURNAL"

// processMain writes and moves payloads, and prints the IDs of those that are on the disk.
func processMain() {
	words := strings.Fields(os.Getenv(processEnv))
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	j, err := journal.Open(journal.Config{Dir: words[0], Segment: 16 << 10, Logger: silent()})
	fail(err)
	s, err := redisstore.Open(ctx, redisstore.Config{URL: words[1], Namespace: words[2]})
	fail(err)
	m := &journal.Mover{Journal: j, Store: s, Logger: silent()}
	go func() { _ = m.Run(ctx) }()
	for {
		r, err := j.Write("t", []byte(strings.Repeat("x\n", 1+rand.IntN(20))))
		fail(err)
		fail(j.Sync(ctx))
		var out strings.Builder
		for _, id := range r.IDs() {
			out.WriteString(string(id) + "\n")
		}
		_, err = os.Stdout.WriteString(out.String())
		fail(err)
	}
}

// Whenever a process is killed, what it was told is on the disk becomes one job, and nothing becomes two.
func TestM17KilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	url, namespace, dir := redistest.SharedRedis(t), redistest.Namespace(t), t.TempDir()
	s := enginetest.Open(t, redisstore.Config{URL: url, Namespace: namespace})
	accepted := map[job.ID]bool{}
	for range 12 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", processEnv, dir, url, namespace))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		enginetest.Check(t, err)
		enginetest.Check(t, cmd.Start())
		lines, limit := bufio.NewReader(out), 1+rand.IntN(2000)
		for n := 0; ; n++ {
			line, err := lines.ReadString('\n')
			if err == io.EOF {
				break // what comes without a newline was cut off
			}
			enginetest.Check(t, err)
			accepted[job.ID(strings.TrimSpace(line))] = true
			if n == limit {
				enginetest.Check(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait() // it was killed
	}
	j := open(t, journal.Config{Dir: dir})
	moving(t, j, s, nil)
	last := write(t, j, "t", "last")[0]
	enginetest.Until(t, "the last is not moved", func() bool {
		_, err := s.Info(t.Context(), job.ID(last))
		return err == nil
	})
	times := map[job.ID]int{}
	for info, err := range client.New(s).Jobs(t.Context(), job.Filter{}) {
		enginetest.Check(t, err)
		times[info.ID]++
	}
	lost := 0
	for id := range accepted {
		if times[id] != 1 {
			lost++
		}
	}
	// An ID has one job. Blocks that a process wrote and did not tell of may be there, too: one for each process.
	if extra := len(times) - len(accepted) - 1; lost > 0 || extra < 0 || extra > 12*20 || len(accepted) < 100 {
		t.Errorf("of %d payloads %d are lost; %d jobs", len(accepted), lost, len(times))
	}
	t.Logf("%d payloads were accepted, %d jobs are there", len(accepted), len(times))
	if s := j.Stats(); s.Files > 2 || s.Damaged > 0 {
		t.Errorf("the journal has %+v when all is moved", s)
	}
}
