package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// StateResult is the key of a job's state that has what came of its last payload, as an Outcome.
const StateResult = handler.StateResult

// LabelFrom is the label of jobs that others have asked for, by lines of their output or by options.then: its value is the ID of that job.
const LabelFrom = "from"

// Outcome is what is kept of the run of a payload.
type Outcome struct {
	Code    handler.Code    `json:"code"`
	Status  int             `json:"exitcode"`
	Version int64           `json:"version"` // of the handler
	Bytes   int             `json:"bytes"`   // of the result
	Result  json.RawMessage `json:"result,omitempty"`
	Large   *Large          `json:"large,omitempty"` // where a result is that is not here
	Error   string          `json:"error,omitempty"`
}

// Rejected is the message on the port err about a payload that ended as FAILED.
type Rejected struct {
	Error  string          `json:"error"`
	Status int             `json:"status"`
	Data   json.RawMessage `json:"data"` // the payload
}

// Large stands for a result that is too large for a message: it is in the state of the job that it came of. Handlers are given the result itself.
type Large struct {
	Job   job.ID `json:"$result"`
	Key   string `json:"key"`   // of its parts: this, a dot and a number from 0
	Parts int    `json:"parts"` // strings, which together are the JSON
	Bytes int    `json:"bytes"`
}

const (
	inMessage = worker.MaxMessage - 4096 // bytes of a result that go into a message
	inState   = 64 << 10                 // … into the Outcome, which people read
	inTree    = job.MaxLaunch - 4096     // … to a job that a run starts
	partBytes = 900 << 10
	logged    = 100
	noted     = 10      // lines about lines, besides those
	payloads  = 2 << 20 // bytes that one run reads
)

// typ is the worker type of one handler.
type typ struct {
	In  port.In[json.RawMessage]  `port:"in"`
	Out port.Out[json.RawMessage] `port:"out"`
	Err port.Out[Rejected]        `port:"err"`

	name  string
	most  int
	owner *Service
}

// JobType implements job.TypeNamer.
func (t *typ) JobType() string { return t.name }

// WorkerOptions implements worker.Configured. How often a payload is tried its handler says, at each failure.
func (t *typ) WorkerOptions() worker.Options {
	return worker.Options{Tries: math.MaxInt32, CommitEachRun: true, MaxRunningHere: t.most, OwnTimeout: true, Together: store.MostSeveral}
}

// errNoHandler is why a payload waits whose type has no handler.
var errNoHandler = errors.New("the type has no handler now: weir handler set makes one")

// noHandler are the options by which such payloads are tried again.
var noHandler = (&handler.Definition{}).WithDefaults()

// Run implements worker.Worker.
func (t *typ) Run(ctx context.Context, run *worker.Run) error {
	h := t.owner.handler(t.name)
	if h == nil {
		if t.In.Len() == 0 {
			return nil
		}
		return t.again(run, noHandler, 0, fmt.Errorf("type %s: %w%s", t.name, errNoHandler, t.owner.like(t.name)))
	}
	options := h.Definition.WithDefaults()
	far := &far{run: run}
	batch, err := t.read(ctx, run, options.Batch, far.tell)
	if err != nil || len(batch) == 0 {
		return err
	}
	results, err := t.owner.do(ctx, h, batch)
	if err != nil {
		return err
	}
	info := run.Info()
	alone := alone(&info)
	single := len(batch) == 1 && alone
	for i := range results {
		if len(batch) > 1 && alone && len(results[i].Value) > inMessage {
			t.owner.remember(batch, results)
			return worker.RetryAfter(0, errors.New("a result is large: payloads go on one by one"))
		}
		if code := codeOf(&results[i]); !code.Done() {
			t.owner.remember(batch[:i], results)
			if len(batch) > 1 {
				why, more, _ := strings.Cut(results[i].Error, "\n")
				results[i].Error = fmt.Sprintf("%s (payload %d of %d)\n%s", why, i+1, len(batch), more)
			}
			return t.again(run, options, results[i].After, worker.AtMessage(i+1, failing(code, &results[i])))
		}
	}
	for i := range results {
		if err := t.done(ctx, run, &info, h, &batch[i], &results[i], single); err != nil {
			return err
		}
		if code := codeOf(&results[i]); code == handler.Failed && !single && alone { // what is kept is of the last one
			_ = run.Log(clip(fmt.Sprintf("payload %d of %d: %s", i+1, len(results), handler.FailureText(code, results[i].Status, results[i].Error)), 4096))
		}
	}
	if n := len(results); n > 1 && alone {
		if err := setOutcome(run, outcome(h, &results[n-1])); err != nil {
			return err
		}
	}
	t.owner.forget(batch)
	return far.end(&info)
}

// far tells how far the payloads of a run are.
type far struct {
	run  *worker.Run
	told atomic.Bool
}

func (f *far) tell(p job.Progress) {
	f.told.Store(true)
	_ = f.run.Progress(p.Done, p.Total, p.Text) // once the run is over, nobody wants to know
}

// end says that there is nothing more to tell: the payloads are done.
func (f *far) end(info *job.Info) error {
	if !f.told.Load() && info.Progress == nil {
		return nil
	}
	return f.run.Progress(0, 0, "")
}

// failing is why a payload is tried again. What it printed is part of that: the log of a run that fails is not kept.
func failing(code handler.Code, r *handler.Result) error {
	why, more, _ := strings.Cut(r.Error, "\n")
	text := handler.FailureText(code, r.Status, (&crash{why: why, output: r.Output}).Error())
	if more != "" {
		text += "\n" + more
	}
	return errors.New(text)
}

// alone tells whether a job is in no graph: it is there for its payload.
func alone(info *job.Info) bool {
	in, ok := info.Port(port.Input, handler.PortIn)
	return ok && !in.Fed && info.Parent == ""
}

// codeOf is the code of a result. A status that has none is an error.
func codeOf(r *handler.Result) handler.Code {
	code := handler.CodeOf(r.Status)
	if code == "" {
		r.Error, r.Status = fmt.Sprintf("it ended with status %d: use 1xx to be tried again, 2xx, 4xx, or 5xx for errors", r.Status), 500
		code = handler.Error
	}
	if r.Error == "" && code != handler.OK {
		r.Error = "it gives no reason"
	}
	return code
}

// message is a payload, with the place that it was read from.
type message struct {
	Payload
	raw json.RawMessage // as it came
}

// read reads payloads for one batch.
func (t *typ) read(ctx context.Context, run *worker.Run, most int, progress func(job.Progress)) (batch []message, err error) {
	size, limit := 0, run.Options().Timeout
	for raw, err := range t.In.All() {
		if err != nil {
			return nil, err
		}
		data := raw
		if large, ok := t.large(run, raw); ok {
			if data, err = t.owner.load(ctx, large); err != nil {
				return nil, err
			}
		}
		batch = append(batch, message{Payload{ID: run.IdempotencyKey("handler"), Try: run.Try(), Data: data, Limit: limit, Progress: progress}, raw})
		if size += len(data); size >= payloads || len(batch) == most {
			break
		}
	}
	return batch, nil
}

// large reads what stands for a result that is too large for a message. Only the job itself whose result that is can have written it.
func (t *typ) large(run *worker.Run, raw json.RawMessage) (l Large, ok bool) {
	if !strings.HasPrefix(string(raw), `{"$result":`) || json.Unmarshal(raw, &l) != nil {
		return l, false
	}
	from, err := run.MessageContext(handler.PortIn)
	by, _ := from[port.ContextBy].(string)
	return l, err == nil && by == "job:"+string(l.Job)
}

// again ends a run so that its payloads are tried again, not before a time is over, unless their time, or number of tries, is up.
func (t *typ) again(run *worker.Run, o handler.Options, after time.Duration, err error) error {
	info := run.Info()
	since := t.owner.first(info.ID, run.Now(), info.Tries)
	if alone(&info) {
		since = info.Created
	}
	switch tried := run.Now().Sub(since); {
	case o.Tries > 0 && run.Try() >= o.Tries:
		return worker.Permanent(fmt.Errorf("tried %s, as often as it may: %w", times(run.Try()), err))
	case tried >= time.Duration(o.Total):
		return worker.Permanent(fmt.Errorf("tried for %s, as long as it may: %w", tried.Round(time.Second), err))
	}
	if own := info.Options; own != nil && own.Backoff > 0 { // what the job asks for, the engine does
		return err
	}
	delay := worker.ExponentialBackoff(time.Duration(o.Delay), time.Duration(o.MaxDelay))
	return worker.RetryAfter(max(delay(run.Try(), err), after), err)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}

// done writes what came of a payload that is done.
func (t *typ) done(ctx context.Context, run *worker.Run, info *job.Info, h *handler.Stored, m *message, r *handler.Result, single bool) (err error) {
	if size := len(r.Value); size > inMessage && !single {
		*r = handler.Result{Status: 413, Error: fmt.Sprintf("the result has %d bytes: within a graph a message has at most %d", size, inMessage), Output: r.Output, Notes: r.Notes}
	}
	code := codeOf(r)
	if err := t.follow(ctx, run, h, r); err != nil {
		return err
	}
	o, value := outcome(h, r), r.Value
	if single && o.Result == nil && value != nil {
		if o.Large, err = t.owner.keep(ctx, run, value); err != nil {
			return err
		}
		if len(value) > inMessage {
			value, _ = json.Marshal(o.Large) // it always can be
		}
	}
	if single {
		if err := setOutcome(run, o); err != nil {
			return err
		}
	}
	switch next := h.Definition.Options.Then; {
	case code != handler.OK || next == "":
	case value == nil:
		_ = run.Log(fmt.Sprintf("no job of type %s is started (options.then): the payload has no result", next))
	default:
		if err := t.then(ctx, run, h, value, o); err != nil {
			return err
		}
	}
	return t.write(info, code, m, r, value)
}

// outcome is what is kept of a payload that is done, without a result that is too large for that.
func outcome(h *handler.Stored, r *handler.Result) Outcome {
	o := Outcome{Code: codeOf(r), Status: r.Status, Version: h.Version, Bytes: len(r.Value), Error: clip(r.Error, 4096)}
	if len(r.Value) <= inState {
		o.Result = r.Value
	}
	return o
}

// write writes to the ports, if somebody can read them: what a root job leaves there keeps it beyond its retention.
func (t *typ) write(info *job.Info, code handler.Code, m *message, r *handler.Result, value json.RawMessage) error {
	name := handler.PortOut
	if code == handler.Failed {
		name = handler.PortErr
	}
	p, ok := info.Port(port.Output, name)
	if !ok || !p.Wired && info.Parent == "" {
		return nil
	}
	if code == handler.Failed {
		data := m.raw
		if len(data) > inMessage-8192 {
			data = nil
		}
		return t.Err.Write(Rejected{Error: clip(r.Error, 4096), Status: r.Status, Data: data})
	}
	if value == nil {
		return nil
	}
	return t.Out.Write(value)
}

// follow starts the jobs that lines of the output ask for, and logs the others.
func (t *typ) follow(ctx context.Context, run *worker.Run, h *handler.Stored, r *handler.Result) error {
	n, waiting := 0, map[string]bool{}
	var notes []string
	for _, line := range r.Output {
		f, ok := line.Follow()
		if !ok {
			if wrong := line.Wrong(); wrong != "" {
				notes = append(notes, wrong)
			}
			continue
		}
		if n++; n > job.MaxLaunchJobs {
			return worker.Permanent(fmt.Errorf("it asks for more than %d jobs", job.MaxLaunchJobs))
		}
		waits := false
		text, err := json.Marshal(f.Payload)
		if err == nil {
			waits, err = t.start(ctx, run, h.Definition.Prefix+f.Type, text)
		}
		if err != nil {
			return fmt.Errorf("starting a job of type %q for a line of its output: %w", f.Type, err)
		}
		if waits && !waiting[f.Type] {
			waiting[f.Type] = true
			notes = append(notes, fmt.Sprintf("nothing runs jobs of type %s now: what its lines have started waits until weir handler set gives the type code", f.Type))
		}
	}
	t.log(run, r)
	if more := len(notes) - noted; more > 0 {
		notes = append(notes[:noted], fmt.Sprintf("… and %d more lines that start no job, or one that waits", more))
	}
	for _, note := range slices.Concat(r.Notes, notes) {
		_ = run.Log(clip(note, 4096)) // what the log cannot hold is left out
	}
	return nil
}

// log puts lines into the log of the job.
func (t *typ) log(run *worker.Run, r *handler.Result) {
	n := 0
	for _, line := range r.Output {
		if _, job := line.Follow(); job {
			continue
		}
		if _, far := line.Progress(); far {
			continue
		}
		if n++; n > logged {
			_ = run.Log(fmt.Sprintf("… and more: %d lines in all", len(r.Output))) // what the log cannot hold is left out
			return
		}
		_ = run.Log(clip(line.Text, 4096))
	}
}

// then starts the job that a result goes to.
func (t *typ) then(ctx context.Context, run *worker.Run, h *handler.Stored, value json.RawMessage, o Outcome) (err error) {
	if len(value) > inTree {
		if o.Large == nil {
			if o.Large, err = t.owner.keep(ctx, run, value); err != nil {
				return err
			}
		}
		value, _ = json.Marshal(o.Large)
	}
	if _, err := t.start(ctx, run, h.Definition.Prefix+h.Definition.Options.Then, value); err != nil {
		return fmt.Errorf("starting a job of type %q for the result: %w", h.Definition.Options.Then, err)
	}
	return nil
}

// start starts a job of a type, and tells whether it waits as the type has no handler now.
func (t *typ) start(ctx context.Context, run *worker.Run, typ string, payload json.RawMessage) (waits bool, err error) {
	if waits, err = t.owner.expect(ctx, typ); err != nil {
		return waits, err
	}
	plan, err := run.PlanNew(job.New{Type: typ, Labels: map[string]string{LabelFrom: string(run.ID())}})
	if err != nil {
		return waits, err
	}
	tree, err := run.Start(planned{plan})
	if err != nil {
		return waits, err
	}
	return waits, tree.Write(handler.PortIn, payload)
}

// planned is a plan that is made already.
type planned struct{ plan *job.Plan }

// Plan implements job.Planner.
func (p planned) Plan() (*job.Plan, error) { return p.plan, nil }

// setOutcome keeps what came of a payload, in the place of what came of the one before.
func setOutcome(run *worker.Run, o Outcome) error {
	var before Outcome
	if _, err := run.State().Get(StateResult, &before); err != nil {
		return err
	}
	for n := 0; before.Large != nil && n < before.Large.Parts; n++ {
		run.State().Unset(partKey(before.Large.Key, n))
	}
	return run.State().Set(StateResult, o)
}

func partKey(key string, n int) string { return fmt.Sprint(key, ".", n) }

// cut is where to cut a text so that its beginning, as JSON, has not much more than n bytes, and no character is split.
func cut(text string, n int) int {
	if len(text) <= n {
		n = len(text)
	}
	for n < len(text) && text[n]&0xC0 == 0x80 {
		n--
	}
	for size, i := 0, 0; i < n; i++ {
		if size++; text[i] == '"' || text[i] == '\\' {
			size++ // as it is written in a string
		}
		if size > n && text[i+1:] != "" && text[i+1]&0xC0 != 0x80 {
			return i + 1
		}
	}
	return n
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
