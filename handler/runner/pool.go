package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/sandbox"
	"github.com/weirworks/weir/job"
)

// Config says how a Pool runs handlers. Its zero value works.
type Config struct {
	// Processes is how many run payloads at a time. Zero means twice the number of CPUs, and at least 4. One type has at most half of them.
	Processes int
	// Warm is how many processes wait for more payloads at most. Zero means four times Processes.
	Warm int
	// Requests is how many batches of handlers of lang http go on at a time. Zero means 64.
	Requests int
	// Commands are the programs of languages, with arguments in front of the code. Those for sh and x-… get a script as their last
	// argument. Missing ones of node, python and sh are looked up in PATH; nothing else is ever started.
	Commands map[string][]string
	// Network lets handlers use the network that ask for it.
	Network bool
	// HTTP says which servers handlers of lang http may ask.
	HTTP component.HTTPPolicy
	// Secret returns a secret by its name. Nil: there are none.
	Secret func(name string) (value string, ok bool)
	// Logger gets what no job can be told. Nil means slog.Default().
	Logger *slog.Logger
}

// defaultCommands are those of languages that need not be configured.
var defaultCommands = map[string][]string{handler.Node: {"node"}, handler.Python: {"python3"}, handler.Shell: {"sh", "-c"}}

// Validate names what is wrong. The error wraps job.ErrConfig.
func (c *Config) Validate() error {
	for name, n := range map[string]int{"Processes": c.Processes, "Warm": c.Warm, "Requests": c.Requests} {
		if n < 0 {
			return fmt.Errorf("%w of handlers: %s %d: use a positive number", job.ErrConfig, name, n)
		}
	}
	for lang, argv := range c.Commands {
		d := handler.Definition{Lang: lang, Body: "x"}
		if lang == handler.HTTP || d.Validate() != nil {
			return fmt.Errorf("%w of handlers: command of language %.40q: use node, python, sh or x-NAME", job.ErrConfig, lang)
		}
		if len(argv) == 0 || argv[0] == "" {
			return fmt.Errorf("%w of handlers: the command of language %s is empty", job.ErrConfig, lang)
		}
	}
	return nil
}

func (c *Config) setDefaults() {
	or := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	or(&c.Processes, max(2*runtime.GOMAXPROCS(0), 4))
	or(&c.Warm, 4*c.Processes)
	or(&c.Requests, 64)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// Payload is what a handler is to run.
type Payload struct {
	ID    string
	Try   int
	Data  json.RawMessage
	Limit time.Duration // for which it may run, if that is less than the handler's timeout; 0 for that
	// Progress is told each line by which the code says how far it is, as soon as it is read. Nil: nobody is.
	Progress func(job.Progress)
}

// Pool runs payloads. It is safe for concurrent use, and is to be closed.
type Pool struct {
	cfg       Config
	abilities sandbox.Abilities
	dir       string          // of the directories of processes
	lock      io.Closer       // of dir, while this process lives
	ctx       context.Context //nolint:containedctx // the parent of all that its processes do
	stop      context.CancelFunc

	mu      sync.Mutex
	lanes   [2]*lane // of processes, and of requests
	idle    []*process
	running sync.WaitGroup
}

// lane is what waits for places of one kind, by the key of its type: the tenant, a byte 0, and the type.
type lane struct {
	sched  handler.Scheduler
	queues map[string][]*task
	busy   map[string]int           // batches of each type
	took   map[string]time.Duration // a payload of each type, about
	total  int
	most   int // batches at a time
	each   int // … of one type
}

// task is one payload that waits or runs.
type task struct {
	Payload
	handler *handler.Stored
	options handler.Options
	ctx     context.Context //nolint:containedctx // of who waits for it
	put     int             // how often its process died before it came to it
	result  handler.Result
	isDone  atomic.Bool
	all     *together
}

// together are the tasks that somebody waits for.
type together struct {
	left atomic.Int64
	over chan struct{}
}

// done says that a task has its result, or that nobody waits for it.
func (t *task) done() {
	if !t.isDone.Swap(true) && t.all.left.Add(-1) == 0 {
		close(t.all.over)
	}
}

// limit is for how long a task may run, once it is its turn.
func (t *task) limit() time.Duration {
	most := time.Duration(t.options.Timeout)
	if t.Limit > 0 {
		return min(t.Limit, most)
	}
	return most
}

// New returns a pool. What the machine cannot do of a sandbox is told to the logger once something runs.
func New(cfg Config) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	dir, lock, err := ownDirectory(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("a directory for handlers: %w", err)
	}
	p := &Pool{cfg: cfg, abilities: sandbox.Probe(), dir: dir, lock: lock}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for i, most := range []int{cfg.Processes, cfg.Requests} {
		p.lanes[i] = &lane{
			queues: map[string][]*task{}, busy: map[string]int{}, took: map[string]time.Duration{}, most: most, each: max(most/2, 1),
		}
		p.lanes[i].sched.Batch = p.lanes[i].batch
		p.lanes[i].sched.Tenant = func(key string) string { tenant, _, _ := strings.Cut(key, "\x00"); return tenant }
	}
	return p, nil
}

// Abilities is what the machine can do of a sandbox, and Missing what it cannot, in a line each.
func (p *Pool) Abilities() (has string, missing []string) {
	return p.abilities.String(), p.abilities.Missing()
}

// Close kills all processes and returns when they have ended. Payloads that wait or run end with an error.
func (p *Pool) Close() error {
	p.stop()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, one := range idle {
		one.end()
	}
	p.running.Wait()
	return errors.Join(os.RemoveAll(p.dir), p.lock.Close())
}

// errClosed is the error of payloads that the end of the pool cuts off.
var errClosed = errors.New("the runner of handlers is stopping")

// Do runs payloads of a handler, of which others may be in the same batches, and returns what came of them, in their order. The error says only
// that they were not waited for.
func (p *Pool) Do(ctx context.Context, h *handler.Stored, payloads []Payload) ([]handler.Result, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, errClosed
	}
	if len(payloads) == 0 {
		return nil, nil
	}
	options := h.Definition.WithDefaults()
	tasks := make([]*task, len(payloads))
	all := &together{over: make(chan struct{})}
	all.left.Store(int64(len(payloads)))
	for i := range payloads {
		tasks[i] = &task{Payload: payloads[i], handler: h, options: options, ctx: ctx, all: all}
	}
	l, key := p.lane(h)
	p.mu.Lock()
	l.queues[key] = append(l.queues[key], tasks...)
	p.dispatch(l)
	p.mu.Unlock()
	select {
	case <-all.over:
	case <-ctx.Done():
		p.drop(l, key, tasks)
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
		p.drop(l, key, tasks)
		return nil, errClosed
	}
	results := make([]handler.Result, len(tasks))
	for i, t := range tasks {
		results[i] = t.result
	}
	return results, nil
}

// lane returns where payloads of a handler wait, and the key of its type there.
func (p *Pool) lane(h *handler.Stored) (l *lane, key string) {
	key = h.Definition.Prefix + "\x00" + h.Type
	if h.Definition.Lang == handler.HTTP {
		return p.lanes[1], key
	}
	return p.lanes[0], key
}

// enough is how many payloads of a handler, whose batches run beside each other, take about a second in all.
func (p *Pool) enough(h *handler.Stored) int {
	l, key := p.lane(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.took[key] == 0 {
		return l.each // which tell how long they take
	}
	return l.each * l.guess(key, h)
}

// drop takes tasks out that wait, as nobody waits for them.
func (p *Pool) drop(l *lane, key string, tasks []*task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.queues[key] = slices.DeleteFunc(l.queues[key], func(t *task) bool { return slices.Contains(tasks, t) })
	for _, t := range tasks {
		t.done()
	}
}

const (
	// batchTime is for how long the payloads of a batch run in all, as far as is known: others could run them meanwhile.
	batchTime = time.Second
	// firstBatch is how many payloads of a type a batch has at most while nothing is known, and behind a crash of a process.
	firstBatch = 4
)

// batch is how many payloads of a type one batch has: those in front that are of one version, fewer where they take long.
func (l *lane) batch(key string) int {
	q, n := l.queues[key], 0
	most := l.guess(key, q[0].handler)
	if q[0].put > 0 { // those behind one that kills its process would be put back again and again
		most = min(most, firstBatch)
	}
	for n < len(q) && n < min(q[0].options.Batch, most) && q[n].handler.Version == q[0].handler.Version {
		n++
	}
	return n
}

// guess is how many payloads of a handler one process runs in the time of a batch. With beforeEach they are two at least: one alone does not
// tell how long it took without that.
func (l *lane) guess(key string, h *handler.Stored) int {
	took, least := l.took[key], 1
	if h.Definition.BeforeEach != "" {
		least = 2
	}
	if took > 0 {
		return max(int(batchTime/took), least)
	}
	return firstBatch
}

// pace is how long a payload has run, without the start of its process; zero if none has.
type pace struct {
	one    time.Duration
	atMost bool // beforeEach, which is for all of a batch, is in it
}

// timed notes how long a payload of a type has run.
func (l *lane) timed(key string, p pace) {
	one, before := p.one, l.took[key]
	if one == 0 || p.atMost && before > 0 && one > before {
		return
	}
	if before > 0 {
		one = (before + one) / 2
	}
	l.took[key] = one
}

// dispatch starts batches while there is room. p.mu is held.
func (p *Pool) dispatch(l *lane) {
	for l.total < l.most && p.ctx.Err() == nil {
		waiting := map[string]int{}
		for key, q := range l.queues {
			if len(q) == 0 {
				delete(l.queues, key)
			} else if l.busy[key] < l.each {
				waiting[key] = len(q)
			}
		}
		key, n := l.sched.Pick(waiting)
		if n == 0 {
			return
		}
		tasks := slices.Clone(l.queues[key][:n])
		l.queues[key] = l.queues[key][n:]
		l.sched.Started(key, n)
		l.busy[key]++
		l.total++
		p.running.Go(func() { p.run(l, key, tasks) })
	}
}

// run runs a batch.
func (p *Pool) run(l *lane, key string, tasks []*task) {
	var rest []*task
	var took pace
	if tasks[0].handler.Definition.Lang == handler.HTTP {
		began := time.Now()
		p.ask(tasks)
		took.one = time.Since(began) / time.Duration(len(tasks))
	} else {
		rest, took = p.runBatch(tasks)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.sched.Stopped(key, len(tasks))
	l.timed(key, took)
	if l.busy[key]--; l.busy[key] == 0 {
		delete(l.busy, key)
	}
	l.total--
	if len(rest) > 0 {
		l.queues[key] = append(rest, l.queues[key]...)
	}
	p.dispatch(l)
}

// maxPut is how often a payload is put back because a process died before it came to it.
const maxPut = 10

// runBatch runs a batch in a process. It returns those payloads that the process did not come to, and how long one took.
func (p *Pool) runBatch(tasks []*task) (rest []*task, took pace) {
	proc, err := p.process(tasks[0])
	if err != nil {
		for _, t := range tasks {
			t.fail(err)
		}
		return nil, pace{}
	}
	done, err := proc.batch(tasks)
	took = proc.pace
	if err == nil {
		p.keep(proc)
		return nil, took
	}
	proc.end()
	if done == len(tasks) { // the end of the batch is nobody's
		return nil, took
	}
	tasks[done].fail(err)
	for _, t := range tasks[done+1:] {
		if t.put++; t.put > maxPut {
			t.fail(fmt.Errorf("%d processes died before they came to it; the last: %w", t.put, err))
			continue
		}
		rest = append(rest, t)
	}
	return rest, took
}

// tell has the log of the task's job say what is not its payload's own fault.
func (t *task) tell(note string) { t.result.Notes = append(t.result.Notes, note) }

// fail ends a task with an error of its process.
func (t *task) fail(err error) {
	t.result = handler.Result{Status: 500, Error: err.Error()}
	if d := new(crash); errors.As(err, &d) {
		// Whoever tells of the result adds what it printed, as of one that has ended.
		t.result.Error, t.result.Output = strings.Replace(t.result.Error, d.Error(), d.reason(), 1), d.output
	}
	t.done()
}

// process returns a process for a task: a warm one, or a new one.
func (p *Pool) process(t *task) (*process, error) {
	p.mu.Lock()
	var old []*process
	var warm *process
	p.idle = slices.DeleteFunc(p.idle, func(one *process) bool {
		switch {
		case one.handler.Type != t.handler.Type:
			return false
		case one.handler.Version < t.handler.Version, one.gone():
			old = append(old, one)
			return true
		case one.handler.Version == t.handler.Version && warm == nil:
			warm = one
			return true
		}
		return false
	})
	p.mu.Unlock()
	for _, one := range old {
		one.end()
	}
	if warm != nil {
		warm.expiry.Stop()
		return warm, nil
	}
	return p.start(t)
}

// keep lets a process wait for more payloads, unless it has had its share.
func (p *Pool) keep(proc *process) {
	if proc.ran >= proc.options.Recycle || p.ctx.Err() != nil {
		proc.end()
		return
	}
	p.mu.Lock()
	var out *process
	if len(p.idle) >= p.cfg.Warm {
		out, p.idle = p.idle[0], slices.Delete(p.idle, 0, 1)
	}
	p.idle = append(p.idle, proc)
	proc.expiry = time.AfterFunc(time.Duration(proc.options.Idle), func() { p.expire(proc) })
	p.mu.Unlock()
	if out != nil {
		out.end()
	}
	if p.ctx.Err() != nil {
		p.expire(proc)
	}
}

// expire ends a process that has waited for long enough, if it still does.
func (p *Pool) expire(proc *process) {
	p.mu.Lock()
	i := slices.Index(p.idle, proc)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		proc.end()
	}
}
