package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// killEvery is how often one of them is killed, on average, for WEIR_KILL_SECONDS.
const killEvery = 700 * time.Millisecond

// killed runs weir serve with a journal and handlers as a process, again and again as it is killed.
type killed struct {
	*testing.T
	redis *redistest.Server
	args  []string
	cmd   *exec.Cmd
	said  *buffer // what the server of now has said
	kills map[string]int
	began time.Time
}

// start returns when the server listens.
func (k *killed) start() {
	k.Helper()
	k.cmd = process(k.T, k.args...)
	k.said = &buffer{}
	k.cmd.Stderr = k.said
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		k.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "http://") {
		k.stop()
		k.Fatalf("the server says %q, %v: %s", line, err, k.said.String())
	}
}

func (k *killed) stop() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait() // it was killed
}

// kill kills one of them, with SIGKILL, and brings it back.
func (k *killed) kill(what string) {
	switch what {
	case "server":
		k.stop()
		k.start()
	case "Redis":
		k.redis.Kill()
		time.Sleep(100 * time.Millisecond) // payloads are accepted meanwhile
		k.redis.Repair()
		k.redis.Restart()
	case "handler":
		all := children(k.cmd.Process.Pid)
		if len(all) == 0 {
			return // none runs at this moment
		}
		_ = syscall.Kill(all[rand.IntN(len(all))], syscall.SIGKILL) // it may have ended by itself
	}
	k.kills[what]++
}

// children are the processes that a process has started.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is a valid one
	for _, file := range files {
		text, _ := os.ReadFile(file) // of a thread that has ended
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// senders send payloads, no two alike, and note what becomes of them.
type senders struct {
	url    string
	client *http.Client

	mu           sync.Mutex
	sent         map[string]bool
	acknowledged map[job.ID]string
	refused      map[string]int // how many requests, by why
}

// post sends payloads, and returns the IDs of the jobs; an error if there is no answer, or a refusal.
func (s *senders) post(lines []string) ([]job.ID, error) {
	resp, err := s.client.Post(s.url, "text/plain", strings.NewReader(strings.Join(lines, "\n"))) //nolint:noctx // the client has a timeout
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", resp.Status, raw)
	}
	var added struct{ IDs []job.ID }
	if err := json.Unmarshal(raw, &added); err != nil {
		return nil, err
	}
	if len(added.IDs) != len(lines) {
		return nil, fmt.Errorf("%d IDs for %d payloads: %.200s", len(added.IDs), len(lines), raw)
	}
	return added.IDs, nil
}

// send sends until stop is closed, with pauses.
func (s *senders) send(sender int, pause time.Duration, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		lines := make([]string, 1+rand.IntN(20))
		for i := range lines {
			lines[i] = fmt.Sprintf("%d|%d|%d", sender, n, i)
		}
		ids, err := s.post(lines)
		s.mu.Lock()
		if err != nil {
			s.refused[fmt.Sprintf("%.150s", err.Error())]++
		}
		for _, line := range lines {
			s.sent[line] = true
		}
		for i, id := range ids {
			s.acknowledged[id] = lines[i]
		}
		s.mu.Unlock()
	}
}

// TestPayloadsOutliveEveryKill kills the server, Redis and processes of handlers again and again while payloads come. Each payload that was
// acknowledged completes, and its effect inside Weir, a job that its handler asks for, is there once.
func TestPayloadsOutliveEveryKill(t *testing.T) {
	t.Parallel()
	seconds, err := strconv.Atoi(os.Getenv("WEIR_KILL_SECONDS"))
	if err != nil {
		seconds = 8
	}
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	enginetest.Check(t, err)
	addr := free.Addr().String()
	_ = free.Close() // the server takes it, each time
	weir(t, redis.URL(), "handler", "set", "acme-mail", "--body", "console.log('J: acme-seen|' + payload); return payload", "--options", `{"delay":"100ms","maxDelay":"1s"}`)
	weir(t, redis.URL(), "handler", "set", "acme-seen", "--body", "return payload")
	k := &killed{T: t, redis: redis, began: time.Now(), kills: map[string]int{}, args: []string{"serve", "--no-page", "--redis", redis.URL(), "--addr", addr, "--journal", t.TempDir()}}
	k.start()
	t.Cleanup(func() { k.stop() })
	s := &senders{
		url: "http://" + addr + "/acme/job/mail/add", client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}},
		sent: map[string]bool{}, acknowledged: map[job.ID]string{}, refused: map[string]int{},
	}
	defer s.client.CloseIdleConnections()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() { s.send(n, time.Duration(seconds)*3*time.Millisecond, stop) }) // as many payloads, however long it takes
	}
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer end()
	victims := []string{"server", "Redis", "handler"}
	for n, until := 0, time.Now().Add(time.Duration(seconds)*time.Second); n < len(victims) || time.Now().Before(until); n++ {
		time.Sleep(rand.N(2 * killEvery))
		if n%len(victims) == 0 {
			rand.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		}
		k.kill(victims[n%len(victims)])
	}
	end()
	if len(s.acknowledged) == 0 {
		t.Fatalf("nothing was acknowledged: %v", s.refused)
	}
	store := enginetest.Open(t, redisstore.Config{URL: redis.URL()})
	s.check(t, k, store)
}

// check waits until all jobs have completed, and counts them.
func (s *senders) check(t *testing.T, k *killed, store *redisstore.Store) {
	t.Helper()
	begin := time.Now()
	last, err := s.post([]string{"last"}) // which the journal hands on behind all others
	if err != nil {
		t.Fatalf("%v; killed %v, the server said: %s", err, k.kills, k.said.String())
	}
	s.acknowledged[last[0]], s.sent["last"] = "last", true
	client := client.New(store)
	for state := "?"; state != ""; time.Sleep(time.Second) { // counting is work for Redis, too
		if state = openJobs(t, client); state == "" {
			if _, err := store.Info(t.Context(), last[0]); err != nil {
				state = "the last payload is no job yet: " + err.Error()
			}
		}
		if time.Since(begin) > 2*time.Minute+time.Since(k.began)/2 {
			t.Fatalf("%s after the last kill: %s; killed %v, %d acknowledged, refused %v", time.Since(begin).Round(time.Second), state, k.kills, len(s.acknowledged), s.refused)
		}
	}
	mails, seen := resultsOf(t, store, "acme-mail"), resultsOf(t, store, "acme-seen")
	effects, jobs, lost := map[string]int{}, map[string]int{}, 0
	for _, line := range seen {
		effects[line]++
	}
	for _, line := range mails {
		if jobs[line]++; jobs[line] > 1 || effects[line] != 1 || !s.sent[line] {
			t.Errorf("payload %q: sent %v, %d jobs, %d effects", line, s.sent[line], jobs[line], effects[line])
		}
	}
	for id, line := range s.acknowledged {
		if mails[id] != line {
			lost++
		}
	}
	if lost > 0 || len(seen) != len(mails) {
		t.Errorf("of %d acknowledged payloads %d are lost; %d payloads have %d effects", len(s.acknowledged), lost, len(mails), len(seen))
	}
	t.Logf("killed %v; %d payloads sent, %d acknowledged, %d completed with %d effects, the last %s after the last kill; refused %v",
		k.kills, len(s.sent), len(s.acknowledged), len(mails), len(seen), time.Since(begin).Round(time.Millisecond), s.refused)
}

// openJobs says how many jobs have not completed; empty if all have.
func openJobs(t *testing.T, client *client.Client) (text string) {
	t.Helper()
	for _, typ := range []string{"acme-mail", "acme-seen"} {
		for _, status := range []job.Status{job.Queued, job.Scheduled, job.Waiting, job.Running, job.Suspended, job.Terminating, job.Failed} {
			n, err := client.Count(t.Context(), job.Filter{Type: typ, Status: []job.Status{status}})
			if err != nil {
				return err.Error() // it is asked again
			}
			if n > 0 {
				text += fmt.Sprintf("%d %s are %s. ", n, typ, status)
			}
		}
	}
	return text
}

// resultsOf returns what came of the jobs of a type that have completed.
func resultsOf(t *testing.T, store *redisstore.Store, typ string) map[job.ID]string {
	t.Helper()
	results := map[job.ID]string{}
	for info, err := range store.Jobs(t.Context(), job.Filter{Type: typ, Status: []job.Status{job.Completed}}) {
		enginetest.Check(t, err)
		var o runner.Outcome
		state, err := store.State(t.Context(), info.ID, runner.StateResult)
		if err != nil || json.Unmarshal(state[runner.StateResult], &o) != nil {
			t.Fatalf("job %s has the result %s, %v", info.ID, state[runner.StateResult], err)
		}
		var line string
		if err := json.Unmarshal(o.Result, &line); err != nil || o.Code != handler.OK {
			t.Fatalf("job %s: %+v, %v", info.ID, o, err)
		}
		results[info.ID] = line
	}
	return results
}
