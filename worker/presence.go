package worker

import (
	"cmp"
	"context"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

const (
	// heartbeatEvery is how often an engine tells that it lives, and what it runs.
	heartbeatEvery = time.Second
	// idleHeartbeats is of how many of these it tells once while it has no run, and had none when it told last.
	idleHeartbeats = 3
	// limitsEvery is after how many of these it looks at the limits of queues, and at those that its types are registered with.
	limitsEvery = 5
	// toldRuns is of how many runs in progress it tells.
	toldRuns = 100
	// goodbye is how long telling that it stopped may take.
	goodbye = time.Second
)

// presence holds the runs in progress, by turn.
type presence struct {
	mu    sync.Mutex
	turns map[*turn]inProgress // without a Job: none now
}

// inProgress is a run in progress.
type inProgress struct {
	store.RunningJob
	ctx     context.Context //nolint:containedctx // that of the run, to see when it ends
	ignored time.Time       // when it was seen first that it has ended
}

// at notes the run that a turn is at, and its context.
func (p *presence) at(ctx context.Context, t *turn, r store.RunningJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns = map[*turn]inProgress{}
	}
	p.turns[t] = inProgress{RunningJob: r, ctx: ctx}
}

// none notes that a turn is at no run.
func (p *presence) none(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns[t] = inProgress{}
}

// over tells that a turn is.
func (p *presence) over(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, t)
}

// running returns the runs in progress, the oldest first.
func (p *presence) running() []store.RunningJob {
	runs := []store.RunningJob{}
	p.mu.Lock()
	for _, r := range p.turns {
		if r.Job != "" {
			runs = append(runs, r.RunningJob)
		}
	}
	p.mu.Unlock()
	slices.SortFunc(runs, func(a, b store.RunningJob) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job)) })
	return runs
}

// tell puts down how many runs are in progress, and the oldest of them.
func (p *presence) tell(info *store.EngineInfo) {
	runs := p.running()
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
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			if n%limitsEvery == 0 {
				_ = e.keepLimits(ctx, info.ID, e.lookAtLimits(ctx))
			}
			e.tellIgnored(time.Now())
			told := info.Running == 0 && info.Stopping == e.stopping() && info.Activity == e.tally.sum()
			info.Stopping, info.Activity, info.Full = e.stopping(), e.tally.sum(), e.full()
			if e.presence.tell(&info); !told || info.Running > 0 || n%idleHeartbeats == 1 {
				_ = e.cfg.Store.Heartbeat(ctx, info)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-e.heartbeat:
				info = e.about()
			}
		}
	}()
	return func() {
		cancel()
		<-done
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer stop()
		info.Activity = e.tally.sum()
		_ = e.cfg.Store.Heartbeat(last, info)
		_ = e.cfg.Store.Leave(last, info.ID)
	}
}

// heartbeatNow has the engine tell of itself, anew.
func (e *Engine) heartbeatNow() {
	select {
	case e.heartbeat <- struct{}{}:
	default: // it is about to
	}
}

// lookAtLimits has the runs that begin from now on keep to the limits of queues that are set, and to those of types that were
// registered last, by whomever. It returns the types as they are registered. If the store does not answer those limits hold that
// are known, and it returns none.
func (e *Engine) lookAtLimits(ctx context.Context) []job.TypeInfo {
	queues, err := e.cfg.Store.QueueLimits(ctx)
	if err != nil {
		return nil
	}
	types, err := e.cfg.Store.Types(ctx)
	if err != nil {
		return nil
	}
	all := e.registry().limit(store.LastLimits(types))
	for queue, n := range queues {
		if e.cfg.Queues[queue] > 0 {
			all = append(all, store.RunLimit{Queue: queue, Max: n})
		}
	}
	e.limits.Store(&all)
	return types
}

// full are the types of which no more runs may begin here now.
func (e *Engine) full() (names []string) {
	r := e.registry()
	for _, name := range r.names {
		if k := r.kinds[name]; r.crowds && k.crowded() {
			names = append(names, name)
		}
	}
	return names
}

// about is what does not change while the engine runs.
func (e *Engine) about() store.EngineInfo {
	host, _ := os.Hostname() // without a name it is known by its process alone
	versions, limits := map[string]int{}, map[string]job.TypeLimit{}
	for name, k := range e.registry().kinds {
		if l := k.options.Limit(); l != (job.TypeLimit{}) {
			limits[name] = l
		}
		if k.version > 1 {
			versions[name] = k.version
		}
	}
	return store.EngineInfo{
		Versions: versions, Build: e.registry().build, Limits: limits,
		ID: e.id, Host: host, PID: os.Getpid(), Version: version(),
		Concurrency: e.cfg.Concurrency, Queues: e.cfg.Queues, Types: e.registry().names,
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
