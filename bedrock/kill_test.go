package bedrock_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// What a test binary is told that is to serve, instead of running tests.
const (
	serveURL       = "WEIR_TEST_BEDROCK_URL"
	serveNamespace = "WEIR_TEST_BEDROCK_NAMESPACE"
)

// serveProcess serves a namespace until the process is killed, and prints where.
func serveProcess(url, namespace string) error {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Namespace: namespace})
	if err != nil {
		return err
	}
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: store})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = leases.Run(ctx) }()
	fmt.Println(l.Addr())
	return bedrock.Serve(ctx, l, handler{bedrock.New(store, leases), new(atomic.Int32)})
}

// TestKilled: when a server is killed, the jobs that its clients have stay theirs, and can be ended through another one; of the others
// each is given once, and those who waited may wait elsewhere.
func TestKilled(t *testing.T) {
	t.Parallel()
	const jobs = 60
	url, namespace := redistest.SharedRedis(t), redistest.Namespace(t)
	s := startOn(t, redisstore.Config{URL: url, Namespace: namespace, Shards: 4})
	stays := s.dial()
	for range jobs {
		stays.ask("CreateJob", "name: foo")
	}
	taken := map[float64]int{}
	for round := range 4 {
		dies := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // itself
		dies.Env = append(os.Environ(), serveURL+"="+url, serveNamespace+"="+namespace)
		out, err := dies.StdoutPipe()
		if err == nil {
			err = dies.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		other := &surface{T: t, store: s.store, addr: strings.TrimSpace(line)}
		waits := other.dial()
		waits.send("GetJob", "name: bar", "connection: wait")
		c := other.dial()
		for range jobs / 6 {
			taken[c.ask("GetJob", "name: foo")["jobID"].(float64)]++
		}
		_ = dies.Process.Kill()
		_ = dies.Wait()
		if _, _, err := waits.tryRead(); err == nil {
			t.Errorf("round %d: a server that was killed answers", round)
		}
	}
	for range jobs / 3 {
		taken[stays.ask("GetJob", "name: foo")["jobID"].(float64)]++
	}
	stays.want(noJob, "GetJob", "name: foo")
	for id, times := range taken {
		if times != 1 {
			t.Errorf("job %v was given %d times", id, times)
		}
		stays.want("200 OK", "FinishJob", jobID(int(id)))
	}
	if len(taken) != jobs {
		t.Errorf("%d jobs were given, of %d", len(taken), jobs)
	}
	stays.ask("CreateJob", "name: bar")
	stays.ask("GetJob", "name: bar")
}
