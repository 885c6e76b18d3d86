package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
)

const (
	// beatEvery is how often an engine tells that it lives, and what it runs.
	beatEvery = time.Second
	// toldRuns is of how many runs in progress it tells.
	toldRuns = 100
	// goodbye is how long telling that it stopped may take.
	goodbye = time.Second
)

// presence holds the runs in progress, by token.
type presence struct {
	mu   sync.Mutex
	runs map[string]job.RunningJob
}

// begun notes a run until ended is called.
func (p *presence) begun(snap *job.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[string]job.RunningJob{}
	}
	p.runs[snap.Token] = job.RunningJob{Job: snap.Info.ID, Type: snap.Info.Type, Queue: snap.Info.Queue, Since: snap.Info.Ran}
}

// ended tells that the run with that token is over.
func (p *presence) ended(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, token)
}

// tell puts down how many runs are in progress, and the oldest of them.
func (p *presence) tell(info *job.EngineInfo) {
	p.mu.Lock()
	runs := slices.AppendSeq([]job.RunningJob{}, maps.Values(p.runs))
	p.mu.Unlock()
	slices.SortFunc(runs, func(a, b job.RunningJob) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job)) })
	info.Running, info.Busy, info.Runs = len(runs), map[string]int{}, runs[:min(len(runs), toldRuns)]
	for i := range runs {
		info.Busy[runs[i].Queue]++
	}
}

// present tells again and again that the engine lives, until leave is called. It goes on
// while the engine stops: its last runs are then what one wants to see. A store that
// cannot be told misses nothing that it needs.
func (e *Engine) present(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	info := e.about()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			info.Stopping = e.stopping()
			e.presence.tell(&info)
			_ = e.cfg.Store.Beat(ctx, info)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer stop()
		_ = e.cfg.Store.Leave(last, info.ID)
	}
}

// about is what does not change while the engine runs.
func (e *Engine) about() job.EngineInfo {
	host, _ := os.Hostname() // without a name it is known by its process alone
	return job.EngineInfo{
		ID: rand.Text(), Host: host, PID: os.Getpid(), Version: version(),
		Concurrency: e.cfg.Concurrency, Queues: e.cfg.Queues, Types: e.registry.names,
	}
}

// module is the path of Weir's module.
const module = "github.com/weirworks/weir"

// version is that of Weir in this program, if it is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
