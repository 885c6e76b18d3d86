package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// runOperations are those of workers that are no Go programs: they lease runs, and end them. The log of a job says what its
// runs did, so they are not in the audit log.
func (s *Server) runOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/workers", id: "register-types", group: groupRuns, role: work, summary: "Say which types of jobs a worker runs, with their ports",
		about: "Then jobs of these types can be created and stand in graphs. A worker says so each time it starts: what was said before of a type in a queue is replaced.",
	}, registerTypes)
	add(s, operation{
		method: http.MethodPost, path: "/v1/runs/lease", id: "lease-runs", group: groupRuns, role: work, unaudited: true, summary: "Begin runs of ready jobs, and wait for some if there are none",
		about: "Each job is given to one worker alone. Its lease ends at `expires_at` unless a heartbeat prolongs it: then somebody else gets the job, and what this worker did is refused. " +
			"The run sees its job's state and messages as they are now; nothing of what it does happens before its commit.",
	}, leaseRuns)
	add(s, operation{
		method: http.MethodPost, path: "/v1/runs/heartbeat", id: "prolong-run", group: groupRuns, role: work, unaudited: true, summary: "Prolong the lease of a run",
		about: "409 with the code fenced: the run has lost its job, and is to stop.",
	}, prolongRun)
	add(s, operation{
		method: http.MethodPost, path: "/v1/runs/commit", id: "commit-run", group: groupRuns, role: work, unaudited: true, status: http.StatusNoContent, summary: "End a run with all that it did, as one transaction",
		about: "All of it happens, once, or nothing. A repeat changes nothing and is answered 204, too: repeat it when no answer came. 409 with the code fenced: the run has lost its job; " +
			"moved: somebody else took messages that it read, and the job is run again. After any other problem the worker still has the run.",
	}, commitRun)
	add(s, operation{
		method: http.MethodPost, path: "/v1/runs/fail", id: "fail-run", group: groupRuns, role: work, unaudited: true, status: http.StatusNoContent, summary: "End a run that failed: nothing that it did is kept",
		about: "With `retry_in` the job is run again after that time. Without, it fails, or what its failure policy says happens: with dead_letter the message that it read is put aside.",
	}, failRun)
	add(s, operation{
		method: http.MethodPost, path: "/v1/runs/release", id: "release-run", group: groupRuns, role: work, unaudited: true, status: http.StatusNoContent, summary: "Hand a run back untouched: its job is ready at once",
	}, func(ctx context.Context, s *session, in *struct{ Body RunRef }) (*nothing, error) {
		return done(s.leases().Release(ctx, in.Body.Run))
	})
}

// leasing are what gives runs to workers, one for each store.
type leasing struct {
	mu     sync.Mutex
	over   bool
	stores map[*redisstore.Store]*worker.Leases
	group  sync.WaitGroup
}

// leases returns what gives runs of the session's store to workers.
func (s *session) leases() *worker.Leases {
	all := &s.leasing
	all.mu.Lock()
	defer all.mu.Unlock()
	if l := all.stores[s.store]; l != nil {
		return l
	}
	cfg := worker.LeaseConfig{Store: s.store, Logger: s.cfg.Logger}
	if s.store == s.cfg.Store {
		cfg.Hooks = s.cfg.Hooks
	}
	l, err := worker.NewLeases(cfg)
	if err != nil {
		panic(err) //nolint:forbidigo // it has a store
	}
	if all.over {
		return l
	}
	if all.stores == nil {
		all.stores = map[*redisstore.Store]*worker.Leases{}
	}
	all.stores[s.store] = l
	ctx, cancel := s.until(context.Background())
	all.group.Go(func() {
		defer cancel()
		_ = l.Run(ctx) // it ends when the server does
	})
	return l
}

// close waits until nothing is given any more.
func (l *leasing) close() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.group.Wait()
}

// RemoteTypes are types of jobs that a worker runs.
type RemoteTypes struct {
	Types []RemoteType `json:"types"`
}

// RemoteType is a type of jobs that a worker runs.
type RemoteType struct {
	Type     string       `json:"type"`
	Queue    string       `json:"queue,omitempty" doc:"default if it is not given"`
	Inputs   []RemotePort `json:"inputs,omitempty"`
	Outputs  []RemotePort `json:"outputs,omitempty"`
	Args     []port.Param `json:"args,omitempty" doc:"the arguments that jobs of the type take; any, if it is not given. Jobs whose arguments have another kind, or do not fit a schema, are refused; of a schema type, enum, properties, required, additionalProperties and items are looked at"`
	Priority *int         `json:"priority,omitempty" doc:"of its jobs, unless they or their nodes name one"`
	Version  string       `json:"version,omitempty" doc:"of the worker, for people"`
	// MaxRunning and MaxRunningBy are as in worker.Options.
	MaxRunning   int    `json:"max_running,omitempty" minimum:"0" doc:"how many runs of the type go on at once at most, whoever runs them; any number, if it is not given"`
	MaxRunningBy string `json:"max_running_by,omitempty" doc:"an argument: each of its values has max_running of its own"`
	// MaxRuns, MaxRunsPer and MaxRunsBy are as in worker.Options.
	MaxRuns    int    `json:"max_runs,omitempty" minimum:"0" doc:"how many runs of the type begin at most within max_runs_per, whoever runs them; any number, if it is not given"`
	MaxRunsPer string `json:"max_runs_per,omitempty" doc:"such as 1s or 500ms"`
	MaxRunsBy  string `json:"max_runs_by,omitempty" doc:"an argument: each of its values has max_runs of its own"`
}

// RemotePort is a port of a type.
type RemotePort struct {
	Name     string          `json:"name"`
	Kind     string          `json:"kind,omitempty" enum:"string,number,integer,boolean,array,object" doc:"what its messages are; any JSON, if it is not given"`
	Default  json.RawMessage `json:"default,omitempty" doc:"of an In port: what is read while it is empty"`
	Limit    int             `json:"limit,omitempty" minimum:"0" doc:"how many messages may wait in it before those who write to it are held back"`
	Required bool            `json:"required,omitempty" doc:"in a graph the In port must be connected"`
	Schema   json.RawMessage `json:"schema,omitempty" doc:"the JSON Schema of its messages, for who writes and reads them; nothing checks it"`
}

// Registered is how many types are known now.
type Registered struct {
	Types int `json:"types"`
}

func registerTypes(ctx context.Context, s *session, in *struct{ Body RemoteTypes }) (*reply[Registered], error) {
	if len(in.Body.Types) == 0 || len(in.Body.Types) > maxRemoteTypes {
		return nil, wrong("types: name 1 to %d", maxRemoteTypes)
	}
	engines, err := s.store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]job.TypeInfo, 0, len(in.Body.Types))
	for _, t := range in.Body.Types {
		info, err := t.info()
		if err == nil {
			err = fits(&info)
		}
		if err == nil {
			err = s.others(&info, engines)
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return answer(Registered{len(infos)}, s.store.Register(ctx, infos))
}

// fits refuses a type of which there is more to say than those who list types want to read.
func fits(t *job.TypeInfo) error {
	raw, err := json.Marshal(t)
	if err == nil && len(raw) > maxRemoteSize {
		err = wrong("type %s comes to %d bytes, with its ports, arguments and schemas: at most %d are allowed; shorten its schemas", t.Type, len(raw), maxRemoteSize)
	}
	return err
}

// others refuses a type that Go programs run: what they say of it is not for others to change.
func (s *session) others(t *job.TypeInfo, engines []store.EngineInfo) error {
	taken := func(by string) error {
		return problem(Kind{"exists", http.StatusConflict, 6}, "type %s is %s: give the worker's type another name, or another queue", t.Type, by)
	}
	for _, w := range s.cfg.Prototypes {
		if name, err := job.TypeOf(w); err == nil && name == t.Type {
			return taken("one of this server's own")
		}
	}
	for i := range engines {
		if e := &engines[i]; e.Concurrency > 0 && e.Queues[t.Queue] > 0 && slices.Contains(e.Types, t.Type) {
			return taken(fmt.Sprintf("run by process %d on %s", e.PID, e.Host))
		}
	}
	return nil
}

const (
	maxRemoteTypes = 1000
	maxRemoteSize  = 16 << 10 // bytes of what is registered of one type, its schemas among it
	maxRemotePorts = 1000
)

// limit says in info how many runs of the type there are.
func (t *RemoteType) limit(info *job.TypeInfo) error {
	o := worker.Options{MaxRunning: t.MaxRunning, MaxRunningBy: t.MaxRunningBy, MaxRuns: t.MaxRuns, MaxRunsBy: t.MaxRunsBy}
	if t.MaxRunsPer != "" {
		per, err := time.ParseDuration(t.MaxRunsPer)
		if err != nil {
			return fmt.Errorf("max_runs_per %.40q is no time: use one such as 1s, 500ms or 24h", t.MaxRunsPer)
		}
		o.MaxRunsPer = per
	}
	if t.Args != nil {
		if err := o.Limited(t.Args); err != nil {
			return err
		}
	}
	info.SetLimit(o.Limit())
	return o.Validate()
}

// info is the type as the store knows it.
func (t *RemoteType) info() (info job.TypeInfo, err error) {
	info = job.TypeInfo{Type: t.Type, Queue: t.Queue, Params: t.Args, Priority: t.Priority, Version: t.Version, Kinds: map[string]string{}, Schemas: map[string]json.RawMessage{}}
	if info.Queue == "" {
		info.Queue = job.DefaultQueue
	}
	if err := errors.Join(job.CheckName("type", info.Type), job.CheckName("queue", info.Queue)); err != nil {
		return info, err
	}
	if err := t.limit(&info); err != nil {
		return info, wrong("type %s: %v", t.Type, err)
	}
	if t.Priority != nil {
		if err := job.CheckPriority(*t.Priority); err != nil {
			return info, err
		}
	}
	if len(t.Version) > job.MaxName {
		return info, wrong("the version of type %s has %d bytes: at most %d are allowed", t.Type, len(t.Version), job.MaxName)
	}
	for _, a := range t.Args {
		if err := errors.Join(checkKind("argument "+a.Name, a.Kind), checkSchema("argument "+a.Name, a.Schema)); err != nil {
			return info, err
		}
	}
	if n := len(t.Inputs) + len(t.Outputs); n > maxRemotePorts {
		return info, wrong("type %s has %d ports: at most %d are allowed", t.Type, n, maxRemotePorts)
	}
	for _, side := range []struct {
		dir   port.Dir
		ports []RemotePort
	}{{port.Input, t.Inputs}, {port.Output, t.Outputs}} {
		for _, p := range side.ports {
			if err := errors.Join(checkKind("port "+p.Name, p.Kind), checkSchema("port "+p.Name, p.Schema)); err != nil {
				return info, err
			}
			spec := port.Spec{Name: p.Name, Dir: side.dir, Default: p.Default, Limit: p.Limit, Required: p.Required, Type: p.Kind}
			if err := spec.Validate(); err != nil {
				return info, wrong("port %q of type %s: %v", p.Name, t.Type, err)
			}
			if _, twice := info.Kinds[port.TypeKey(side.dir, p.Name)]; twice {
				return info, wrong("type %s has two %s ports %q", t.Type, side.dir, p.Name)
			}
			info.Ports = append(info.Ports, spec)
			info.Kinds[port.TypeKey(side.dir, p.Name)] = p.Kind
			if len(p.Schema) > 0 {
				info.Schemas[port.TypeKey(side.dir, p.Name)] = p.Schema
			}
		}
	}
	return info, nil
}

// kindsOfJSON are the words for what arguments and messages are.
var kindsOfJSON = []string{port.KindString, port.KindNumber, port.KindInteger, port.KindBool, port.KindArray, port.KindObject}

func checkKind(of, kind string) error {
	if kind == port.KindAny || slices.Contains(kindsOfJSON, kind) {
		return nil
	}
	return wrong("kind %.40q of %.80s: %s", kind, of, port.Suggest(kind, kindsOfJSON))
}

// checkSchema refuses what is not a JSON Schema, as far as it is looked at.
func checkSchema(of string, raw json.RawMessage) error {
	var s port.Schema
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > port.MaxSchema:
		return wrong("the schema of %.80s has %d bytes: at most %d are allowed", of, len(raw), port.MaxSchema)
	case raw[0] != '{':
		return wrong("the schema of %.80s is not an object: use a JSON Schema such as {\"type\": \"string\"}", of)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return wrong("the schema of %.80s is not a JSON Schema: %v", of, err)
	}
	return nil
}

// LeaseAsked says which runs a worker wants.
type LeaseAsked struct {
	Types    []string  `json:"types" doc:"patterns of types: * stands for any characters, ? for one"`
	Queues   []string  `json:"queues,omitempty" doc:"in this order; default alone, if it is not given"`
	Max      int       `json:"max,omitempty" minimum:"0" maximum:"100" doc:"runs at most; 1 if it is not given"`
	Messages int       `json:"messages,omitempty" minimum:"0" maximum:"1000" doc:"messages of each In port that a run sees at most; 1000 if it is not given"`
	Wait     *duration `json:"wait,omitempty" doc:"how long to wait for a ready job, at most 5m; not at all, if it is not given"`
	Lease    *duration `json:"lease,omitempty" doc:"for how long a run is the worker's without a heartbeat, 100ms to 1h; 30s if it is not given"`
}

// Runs are runs that began for a worker.
type Runs struct {
	Runs []RemoteRun `json:"runs"`
}

// RemoteRun is a run that began for a worker, and what it sees.
type RemoteRun struct {
	Run       string                     `json:"run" doc:"names the run in the operations that end it: any text"`
	ExpiresAt time.Time                  `json:"expires_at" doc:"when the lease ends, unless a heartbeat prolongs it"`
	Job       job.ID                     `json:"job"`
	Name      string                     `json:"name,omitempty"`
	Type      string                     `json:"type"`
	Queue     string                     `json:"queue"`
	Parent    job.ID                     `json:"parent,omitempty"`
	Labels    map[string]string          `json:"labels,omitempty"`
	Args      json.RawMessage            `json:"args" doc:"the arguments of the job: an object"`
	State     map[string]json.RawMessage `json:"state" doc:"what earlier runs of the job stored"`
	Inputs    map[string]RemoteInput     `json:"inputs" doc:"by In port"`
	Outputs   []string                   `json:"outputs" doc:"the Out ports that can be written to"`
	Children  []RemoteChild              `json:"children,omitempty" doc:"those that woke the job since its last run"`
	Step      int64                      `json:"step" doc:"how many runs of the job were committed"`
	Try       int                        `json:"try" doc:"1 for the first try of this run, 2 after a failure, …"`
	Shutdown  bool                       `json:"shutdown" doc:"the job was terminated: this run is its last"`
}

// RemoteInput is what a run sees of an In port.
type RemoteInput struct {
	From     int64           `json:"from" doc:"the number of the first, of all that the port ever had, from 0: the same each time that a message is read"`
	Messages []job.Message   `json:"messages" doc:"the oldest first"`
	More     int             `json:"more" doc:"messages behind these that the run was not given"`
	Closed   bool            `json:"closed" doc:"nothing comes behind these and those"`
	Default  json.RawMessage `json:"default,omitempty" doc:"what is to be read instead if there are no messages"`
}

// RemoteChild is a child that woke its parent.
type RemoteChild struct {
	Name string `json:"name"`
	Job  job.ID `json:"job"`
}

func leaseRuns(ctx context.Context, s *session, in *struct{ Body LeaseAsked }) (*reply[Runs], error) {
	req := worker.LeaseRequest{Types: in.Body.Types, Queues: in.Body.Queues, Max: in.Body.Max, Messages: in.Body.Messages, Foreign: true}
	if in.Body.Wait != nil {
		req.Wait = time.Duration(*in.Body.Wait)
	}
	if in.Body.Lease != nil {
		req.Lease = time.Duration(*in.Body.Lease)
	}
	if req.Wait > maxWait {
		return nil, wrong("wait %s: at most %s; ask again for as long as you like", req.Wait, maxWait)
	}
	waiting, stop := s.until(ctx)
	defer stop()
	leases := s.leases()
	taken, err := leases.Take(waiting, req)
	switch {
	case errors.Is(err, job.ErrConfig):
		return nil, wrong("%v", err)
	case err != nil && waiting.Err() != nil: // the server stops: another one may have some
		return answer(Runs{Runs: []RemoteRun{}}, nil)
	case err != nil:
		return nil, err
	}
	out := Runs{Runs: []RemoteRun{}}
	for _, l := range taken {
		err := s.still(ctx)
		var run RemoteRun
		if err == nil {
			run, err = s.remoteRun(ctx, l)
		}
		if err != nil {
			for _, l := range taken {
				err = errors.Join(err, leases.Release(ctx, l.Ticket()))
			}
			return nil, err
		}
		out.Runs = append(out.Runs, run)
	}
	return answer(out, nil)
}

// remoteRun is a run as its worker sees it.
func (s *session) remoteRun(ctx context.Context, l worker.Leased) (RemoteRun, error) {
	i := &l.Info
	run := RemoteRun{
		Run: l.Ticket(), ExpiresAt: l.Expires.UTC(), Job: i.ID, Name: i.Name, Type: i.Type, Queue: i.Queue, Parent: i.Parent, Labels: i.Labels,
		Args: i.Args, State: l.State, Inputs: map[string]RemoteInput{}, Outputs: []string{}, Step: i.Steps, Try: i.Tries + 1, Shutdown: l.Shutdown,
	}
	if run.Args == nil {
		run.Args = json.RawMessage("{}")
	}
	for _, k := range l.Woken {
		run.Children = append(run.Children, RemoteChild{k.Name, k.ID})
	}
	for k := range i.Ports {
		p := &i.Ports[k]
		switch {
		case p.Name == port.Any:
		case p.Dir == port.Output && !p.Closed:
			run.Outputs = append(run.Outputs, p.Name)
		case p.Dir == port.Input:
			box := l.In.Of(p.Name)
			messages, err := box.Messages()
			if err != nil {
				return run, err
			}
			run.Inputs[p.Name] = RemoteInput{From: box.Head, Messages: messages, More: box.Len - len(messages), Closed: p.Closed, Default: l.Defaults[p.Name]}
		}
	}
	if l.Whole {
		return run, nil
	}
	state, err := s.store.State(ctx, i.ID)
	run.State = state
	return run, err
}

// RunRef names a run.
type RunRef struct {
	Run string `json:"run" doc:"as the lease named it"`
}

// Prolonging says for how long.
type Prolonging struct {
	RunRef
	Lease    *duration     `json:"lease,omitempty" doc:"from now on, 100ms to 1h; 30s if it is not given"`
	Progress *job.Progress `json:"progress,omitempty" doc:"how far the run is; tree, top and the page show it"`
}

// Prolonged is until when the run is the worker's.
type Prolonged struct {
	ExpiresAt time.Time `json:"expires_at"`
}

func prolongRun(ctx context.Context, s *session, in *struct{ Body Prolonging }) (*reply[Prolonged], error) {
	lease := worker.DefaultClientLease
	if in.Body.Lease != nil {
		lease = time.Duration(*in.Body.Lease)
	}
	until, err := s.leases().Refresh(ctx, in.Body.Run, lease, in.Body.Progress)
	return answer(Prolonged{until}, err)
}

// Committing is all that a run did.
type Committing struct {
	RunRef
	Read     map[string]int    `json:"read,omitempty" doc:"how many messages the run read, by In port; the others stay for the next run"`
	Write    []RemoteWrite     `json:"write,omitempty" doc:"in this order"`
	Close    []string          `json:"close,omitempty" doc:"Out ports that get no more messages"`
	State    *RemoteState      `json:"state,omitempty"`
	Spawn    []RemoteSpawn     `json:"spawn,omitempty" doc:"children of the job"`
	WakeIn   []duration        `json:"wake_in,omitempty" doc:"more runs, so long after this one, whatever else happens"`
	Log      []json.RawMessage `json:"log,omitempty" doc:"entries for the job's log"`
	Progress *job.Progress     `json:"progress,omitempty" doc:"how far the job is; tree, top and the page show it"`
	Status   string            `json:"status,omitempty" enum:"done,suspend,again" doc:"done, if it is not given: the job completes when nothing more can come, and sleeps until something does; suspend: it sleeps, also when nothing can come; again: it is run again at once"`
}

// RemoteWrite are messages for an Out port.
type RemoteWrite struct {
	Port     string            `json:"port"`
	Messages []json.RawMessage `json:"messages"`
	Key      string            `json:"key,omitempty" doc:"of several consumers, those of one key go to the same"`
	Context  port.Context      `json:"context,omitempty" doc:"travels with each of the messages"`
}

// RemoteState changes the state of a job.
type RemoteState struct {
	Set   map[string]json.RawMessage `json:"set,omitempty"`
	Unset []string                   `json:"unset,omitempty"`
}

// RemoteSpawn is a child that a run makes.
type RemoteSpawn struct {
	Name     string            `json:"name" doc:"unique among the children of the job"`
	Type     string            `json:"type" doc:"one that an engine or a worker has registered"`
	Queue    string            `json:"queue,omitempty"`
	Args     json.RawMessage   `json:"args,omitempty"`
	Priority *int              `json:"priority,omitempty" minimum:"0" maximum:"1000"`
	Labels   map[string]string `json:"labels,omitempty"`
	Alias    string            `json:"alias,omitempty"`
}

// How a run ends, by the word for it.
var runEnds = map[string]error{"": nil, "done": nil, "suspend": worker.ErrSuspend, "again": worker.ErrAgain}

func commitRun(ctx context.Context, s *session, in *struct{ Body Committing }) (*nothing, error) {
	b := &in.Body
	end, known := runEnds[b.Status]
	if !known {
		return nil, wrong("status %.40q: %s", b.Status, port.Suggest(b.Status, []string{"done", "suspend", "again"}))
	}
	w := worker.Work{Read: b.Read, Close: b.Close, Log: b.Log, Progress: b.Progress, End: end}
	for _, m := range b.Write {
		w.Write = append(w.Write, worker.Written(m))
	}
	if b.State != nil {
		w.Set, w.Unset = b.State.Set, b.State.Unset
	}
	for _, d := range b.WakeIn {
		w.WakeAfter = append(w.WakeAfter, time.Duration(d))
	}
	for _, c := range b.Spawn {
		if c.Type == trigger.Type {
			return nil, problem(Kind{"forbidden", http.StatusForbidden, 8}, "child %.80q: a run over HTTP makes no triggers, which start trees as engines do; add them with POST /v1/triggers, with a token that may operate", c.Name)
		}
		n := job.New{Type: c.Type, Queue: c.Queue, Priority: c.Priority, Labels: c.Labels, Alias: c.Alias}
		if c.Args != nil {
			n.Args = c.Args
		}
		w.Spawn = append(w.Spawn, worker.Spawned{Name: c.Name, New: n})
	}
	return done(s.leases().Commit(ctx, b.Run, w))
}

// Failing says why a run failed.
type Failing struct {
	RunRef
	Error   string            `json:"error" doc:"for people"`
	Stack   string            `json:"stack,omitempty" doc:"where in the code"`
	Read    map[string]int    `json:"read,omitempty" doc:"how many messages the run had read, by In port"`
	Log     []json.RawMessage `json:"log,omitempty" doc:"entries for the job's log"`
	RetryIn *duration         `json:"retry_in,omitempty" doc:"after this time the job is run again"`
}

func failRun(ctx context.Context, s *session, in *struct{ Body Failing }) (*nothing, error) {
	b := &in.Body
	if b.Error == "" {
		return nil, wrong("error is missing: say why the run failed")
	}
	f := worker.RunFailure{Error: b.Error, Stack: b.Stack, Read: b.Read, Log: b.Log}
	if b.RetryIn != nil {
		d := time.Duration(*b.RetryIn)
		f.RetryAfter = &d
	}
	return done(s.leases().Fail(ctx, b.Run, f))
}
