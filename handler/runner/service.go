package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	// lookEvery is how often a Service looks for new versions.
	lookEvery = 500 * time.Millisecond
	// DefaultConcurrency is how many runs of handlers' jobs go on at a time: far more than processes, as those that wait fill batches.
	DefaultConcurrency = 1024
	// rememberFor is for how long results are kept whose run was not committed, how many, and of how many bytes in all.
	rememberFor     = 10 * time.Minute
	remembered      = 10_000
	rememberedBytes = 64 << 20
)

// Store is what a Service needs.
type Store interface {
	worker.Store
	store.Store
	store.Handlers
}

// ServiceConfig says what a Service runs.
type ServiceConfig struct {
	Store Store
	// Pool runs the payloads. The service does not close it.
	Pool *Pool
	// Engine is the configuration of the engine of handlers, but Store and Workers. Zero Concurrency means DefaultConcurrency.
	Engine worker.Config
}

// Service has an engine of its own that runs the jobs of all handlers of a namespace, each in its newest version. So what they hold up is
// each other at most, and within one type alone nearly always: a type has half of the engine's slots.
type Service struct {
	cfg   ServiceConfig
	log   *slog.Logger
	known atomic.Pointer[map[string]*handler.Stored] // also those that were deleted
	seen  int64                                      // the revision

	engine atomic.Pointer[worker.Engine] // once there is a type

	waking  sync.WaitGroup
	mu      sync.Mutex
	results map[string]kept      // by the ID of the payload
	size    int                  // bytes of the results
	tried   map[job.ID]time.Time // since when
	hints   map[string]string    // what like says, as long as known is hintsOf
	hintsOf *map[string]*handler.Stored
}

type kept struct {
	result handler.Result
	at     time.Time
}

// NewService returns a service. The error wraps job.ErrConfig.
func NewService(cfg ServiceConfig) (*Service, error) {
	if cfg.Store == nil || cfg.Pool == nil {
		return nil, fmt.Errorf("%w of the service of handlers: Store and Pool are required", job.ErrConfig)
	}
	cfg.Engine.Store = cfg.Store
	if cfg.Engine.Concurrency == 0 {
		cfg.Engine.Concurrency = DefaultConcurrency
	}
	if cfg.Engine.Logger == nil {
		cfg.Engine.Logger = slog.Default()
	}
	s := &Service{cfg: cfg, log: cfg.Engine.Logger, seen: -1, results: map[string]kept{}, tried: map[job.ID]time.Time{}}
	s.known.Store(&map[string]*handler.Stored{})
	return s, nil
}

// Run serves jobs of handlers until ctx ends, and as an engine does until its runs have ended.
func (s *Service) Run(ctx context.Context) error {
	var engine *worker.Engine
	defer s.waking.Wait()
	ended := make(chan error, 1)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failed := false
	for {
		fresh, err := s.look(ctx)
		if err == nil && len(fresh) > 0 {
			if engine, err = s.serve(ctx, engine, fresh, ended); err != nil {
				s.seen = -1 // it looks again
			}
		}
		if err != nil && ctx.Err() == nil && !failed {
			s.log.Warn("handlers cannot be read; it goes on with those that are known", "error", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case err := <-ended:
			return err
		case <-ctx.Done():
			if engine != nil {
				return <-ended
			}
			return nil
		}
	}
}

// look reads the handlers if any has changed, and returns the types that are new.
func (s *Service) look(ctx context.Context) (fresh []string, err error) {
	now, err := s.cfg.Store.HandlersRevision(ctx)
	if err != nil || now == s.seen {
		return nil, err
	}
	all, revision, err := handler.All(ctx, s.cfg.Store)
	if err != nil {
		return nil, err
	}
	before, next := *s.known.Load(), make(map[string]*handler.Stored, len(all))
	for i := range all {
		next[all[i].Type] = &all[i]
		if b := before[all[i].Type]; b != nil && b.Deleted && !all[i].Deleted {
			s.waking.Go(func() { s.wake(ctx, all[i].Type) })
		}
		if before[all[i].Type] == nil || s.seen < 0 {
			fresh = append(fresh, all[i].Type)
		}
	}
	s.known.Store(&next)
	s.seen = revision
	return fresh, nil
}

// wake has payloads run now that have waited for a handler, which is there now. What it cannot do their next try does.
func (s *Service) wake(ctx context.Context, typ string) {
	client := client.New(s.cfg.Store)
	for info, err := range client.Jobs(ctx, job.Filter{Type: typ, Status: []job.Status{job.Scheduled}}) {
		if err != nil {
			return
		}
		if strings.Contains(info.Reason, errNoHandler.Error()) {
			_ = client.At(info.ID).Run(ctx)
		}
	}
}

// serve has the engine serve some types, too.
func (s *Service) serve(ctx context.Context, engine *worker.Engine, names []string, ended chan<- error) (*worker.Engine, error) {
	workers := make([]worker.Worker, len(names))
	for i, name := range names {
		workers[i] = &typ{name: name, most: s.enough(s.handler(name)), owner: s}
	}
	if engine != nil {
		var errs []error
		for _, w := range workers { // one that another program has as well is no reason to leave out others
			if err := engine.Add(ctx, w); err != nil && !errors.Is(err, job.ErrExists) {
				errs = append(errs, err)
			}
		}
		return engine, errors.Join(errs...)
	}
	has, missing := s.cfg.Pool.Abilities()
	s.log.Info("handlers run in a sandbox", "of", has)
	for _, line := range missing {
		s.log.Warn("sandbox of handlers: " + line)
	}
	cfg := s.cfg.Engine
	cfg.Workers = workers
	engine, err := worker.New(cfg)
	if err != nil {
		return nil, err
	}
	s.engine.Store(engine)
	go func() { ended <- engine.Run(ctx) }()
	return engine, nil
}

// handler returns the newest version of the handler of a type; nil if it has none.
func (s *Service) handler(typ string) *handler.Stored {
	h := (*s.known.Load())[typ]
	if h == nil || h.Deleted {
		return nil
	}
	return h
}

// like says which type with a handler was perhaps meant by one that has none, behind a semicolon; or nothing. It is looked for once while
// handlers stay as they are: many payloads may wait for a type that is none.
func (s *Service) like(typ string) string {
	known := s.known.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hintsOf != known {
		s.hintsOf, s.hints = known, map[string]string{}
	}
	hint, ok := s.hints[typ]
	if !ok {
		hint = nearest(typ, *known)
		s.hints[typ] = hint
	}
	return hint
}

func nearest(typ string, known map[string]*handler.Stored) string {
	var others []string
	for name, h := range known {
		if name != typ && !h.Deleted {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		if client, is := strings.CutSuffix(typ, "-"+name); is {
			return fmt.Sprintf("; there is one of %q: that of the client %q is of %q", name, client, typ)
		}
	}
	if hint := port.Suggest(typ, others); strings.HasPrefix(hint, "did you mean") {
		return "; " + hint
	}
	return ""
}

// enough is how many jobs of a handler's type are enough for its processes to have work: those that wait for one longer than they must
// are not there for other programs.
func (s *Service) enough(h *handler.Stored) int {
	n := max(s.cfg.Engine.Concurrency/2, 1)
	if h == nil {
		return n
	}
	return min(s.cfg.Pool.enough(h), n)
}

// do runs payloads, but those whose results are known as the run that had them was not committed.
func (s *Service) do(ctx context.Context, h *handler.Stored, batch []message) ([]handler.Result, error) {
	results := make([]handler.Result, len(batch))
	var todo []Payload
	var at []int
	s.mu.Lock()
	for i := range batch {
		if k, ok := s.results[batch[i].ID]; ok {
			results[i] = k.result
			continue
		}
		todo, at = append(todo, batch[i].Payload), append(at, i)
	}
	s.mu.Unlock()
	if len(todo) == 0 {
		return results, nil
	}
	got, err := s.cfg.Pool.Do(ctx, h, todo)
	if engine := s.engine.Load(); engine != nil {
		engine.LimitHere(h.Type, s.enough(h))
	}
	for i := range got {
		results[at[i]] = got[i]
	}
	return results, err
}

// remember keeps results that are done, of a run that is not committed, for the next one.
func (s *Service) remember(batch []message, results []handler.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range batch {
		if !handler.CodeOf(results[i].Status).Done() {
			continue
		}
		s.drop(batch[i].ID)
		if size := bytesOf(&results[i]); len(s.results) < remembered && s.size+size <= rememberedBytes {
			s.results[batch[i].ID] = kept{results[i], now}
			s.size += size
		}
	}
}

// drop lets go of a result. s.mu is held.
func (s *Service) drop(id string) {
	if k, ok := s.results[id]; ok {
		s.size -= bytesOf(&k.result)
		delete(s.results, id)
	}
}

func bytesOf(r *handler.Result) int {
	n := len(r.Value) + len(r.Error)
	for _, line := range r.Output {
		n += len(line.Text)
	}
	return n
}

// forget lets go of results that are committed, and of those that are old.
func (s *Service) forget(batch []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results) == 0 {
		return
	}
	for i := range batch {
		s.drop(batch[i].ID)
	}
	if len(s.results) > remembered/2 || s.size > rememberedBytes/2 {
		for id, k := range s.results {
			if time.Since(k.at) > rememberFor {
				s.drop(id)
			}
		}
	}
}

// first returns since when a job's payload is tried, as far as is known here.
func (s *Service) first(id job.ID, now time.Time, tries int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since, ok := s.tried[id]; ok && tries > 0 {
		return since
	}
	if len(s.tried) >= remembered {
		clear(s.tried) // their time begins anew
	}
	s.tried[id] = now
	return now
}

// expect lets jobs of a type be started, and tells whether they wait as the type has no handler now.
func (s *Service) expect(ctx context.Context, typ string) (waits bool, err error) {
	if h := (*s.known.Load())[typ]; h != nil {
		return h.Deleted, nil
	}
	if _, err := s.cfg.Store.Type(ctx, job.DefaultQueue, typ); !errors.Is(err, job.ErrUnknownType) {
		return false, err
	}
	return true, handler.Expect(ctx, s.cfg.Store, typ)
}

// keep puts a large result into the state of its job, under a key of its own: until the run is committed nobody knows it.
func (s *Service) keep(ctx context.Context, run *worker.Run, value json.RawMessage) (*Large, error) {
	l := &Large{Job: run.ID(), Key: StateResult + "." + strings.ToLower(rand.Text()[:8]), Bytes: len(value)}
	for text := string(value); text != ""; l.Parts++ {
		n := cut(text, partBytes)
		part, err := port.Encode(text[:n])
		if err == nil {
			err = s.cfg.Store.SetState(ctx, run.ID(), map[string]json.RawMessage{partKey(l.Key, l.Parts): part}, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("keeping a result of %d bytes: %w", l.Bytes, err)
		}
		text = text[n:]
	}
	return l, nil
}

// load reads a large result.
func (s *Service) load(ctx context.Context, l Large) (json.RawMessage, error) {
	if l.Parts < 1 || l.Parts > 64 || !strings.HasPrefix(l.Key, StateResult+".") {
		return nil, worker.Permanent(fmt.Errorf("%w: it does not stand for a result", port.ErrEncoding))
	}
	var text strings.Builder
	for n := range l.Parts {
		key := partKey(l.Key, n)
		state, err := s.cfg.Store.State(ctx, l.Job, key)
		if err != nil {
			return nil, fmt.Errorf("the result of job %s: %w", l.Job, err)
		}
		var part string
		if err := json.Unmarshal(state[key], &part); err != nil {
			return nil, worker.Permanent(fmt.Errorf("the result of job %s is gone", l.Job))
		}
		text.WriteString(part)
	}
	return json.RawMessage(text.String()), nil
}
