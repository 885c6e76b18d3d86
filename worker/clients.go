package worker

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/store"
)

const (
	// lookEvery is how often Leases looks for clients that wait, at most, while jobs become ready again and again.
	lookEvery = 20 * time.Millisecond
	// askedFor is for how long it is known that a client asked for a type: it is busy with what it got.
	askedFor = time.Minute
	// maxAsked is how many patterns of types are known.
	maxAsked = 1000
)

// waitingClients are those to whom no job could be given yet, the first first.
type waitingClients struct {
	more chan struct{} // gets a value when jobs may have become ready

	mu  sync.Mutex
	all []*waitingClient
}

type waitingClient struct {
	req  LeaseRequest
	told chan struct{} // gets a value when a job may be ready for it
	some bool          // it got one; of the mutex
}

func newWaitingClients() waitingClients { return waitingClients{more: make(chan struct{}, 1)} }

func (w *waitingClients) enter(req LeaseRequest) *waitingClient {
	c := &waitingClient{req: req, told: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, c)
	return c
}

// leave forgets a client. If it was told of a job, and has another one or has gone, somebody else may have that.
func (w *waitingClients) leave(c *waitingClient) {
	w.mu.Lock()
	w.all = slices.DeleteFunc(w.all, func(o *waitingClient) bool { return o == c })
	told := c.some
	w.mu.Unlock()
	if told {
		w.hear()
	}
}

// hear notes that jobs may have become ready.
func (w *waitingClients) hear() {
	select {
	case w.more <- struct{}{}:
	default: // it will be looked anyway
	}
}

// queues returns where clients wait for jobs.
func (w *waitingClients) queues() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, c := range w.all {
		for _, q := range c.req.Queues {
			all[q] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// tell tells one client that jobs of a type are ready: the first that may have them and has not been told of others. It is the
// last then.
func (w *waitingClients) tell(queue, typ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.all {
		if !slices.Contains(c.req.Queues, queue) || len(c.req.matching([]string{typ})) == 0 {
			continue
		}
		select {
		case c.told <- struct{}{}:
			c.some = true
			w.all = append(slices.Delete(w.all, i, i+1), c)
			return
		default:
		}
	}
}

// serve looks for clients that wait, when it hears of ready jobs, until ctx ends.
func (l *Leases) serve(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.clients.more:
		}
		if queues := l.clients.queues(); len(queues) > 0 {
			notifications, err := l.ready(ctx, queues)
			if err != nil && ctx.Err() == nil {
				l.cfg.Logger.Warn("looking for ready jobs for clients that wait; it is repeated", "error", err)
			}
			for _, notification := range notifications {
				for _, typ := range notification.Types {
					l.clients.tell(notification.Queue, typ)
				}
			}
		}
		pause.Reset(lookEvery)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// asked is what clients have asked for lately, by queue and pattern of types, and when.
type asked struct {
	mu     sync.Mutex
	queues map[string]map[string]time.Time
	count  int
}

func (a *asked) note(req LeaseRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queues == nil {
		a.queues = map[string]map[string]time.Time{}
	}
	until := time.Now().Add(req.Wait + askedFor)
	for _, q := range req.Queues {
		for _, t := range req.Types {
			last, known := a.queues[q][t]
			if !known && a.count == maxAsked {
				continue
			}
			if a.queues[q] == nil {
				a.queues[q] = map[string]time.Time{}
			}
			if !known {
				a.count++
			}
			if until.After(last) {
				a.queues[q][t] = until
			}
		}
	}
}

// types returns the patterns that hold of each queue, and forgets the others.
func (a *asked) types() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string][]string{}
	now := time.Now()
	for q, types := range a.queues {
		before := len(types)
		maps.DeleteFunc(types, func(_ string, until time.Time) bool { return now.After(until) })
		if a.count -= before - len(types); len(types) == 0 {
			delete(a.queues, q)
			continue
		}
		out[q] = slices.Sorted(maps.Keys(types))
	}
	return out
}

// present tells again and again which types clients run, of each queue as an engine, until ctx ends.
func (l *Leases) present(ctx context.Context) {
	host, _ := os.Hostname()
	ids := map[string]string{}
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		all := l.asked.types()
		for queue, types := range all {
			if ids[queue] == "" {
				ids[queue] = rand.Text()
			}
			_ = l.cfg.Store.Heartbeat(ctx, store.EngineInfo{
				ID: ids[queue], Host: host, PID: os.Getpid(), Version: version(), Queues: map[string]int{queue: 1}, Types: types,
				Busy: map[string]int{}, Runs: []store.RunningJob{}, Activity: l.tally(queue).sum(),
			})
		}
		l.leave(ctx, ids, all)
		select {
		case <-ctx.Done():
			l.leave(ctx, ids, nil)
			return
		case <-tick.C:
		}
	}
}

// tally counts what clients' runs of a queue did.
func (l *Leases) tally(queue string) *tally {
	t, ok := l.tallies.Load(queue)
	if !ok {
		t, _ = l.tallies.LoadOrStore(queue, &tally{})
	}
	return t.(*tally) //nolint:forcetypeassert // there is nothing else in it
}

// leave tells that no client asks for jobs of queues any more, but for some.
func (l *Leases) leave(ctx context.Context, ids map[string]string, but map[string][]string) {
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	for queue, id := range ids {
		if but[queue] == nil {
			_ = l.cfg.Store.Leave(last, id)
			l.tallies.Delete(queue)
			delete(ids, queue)
		}
	}
}
