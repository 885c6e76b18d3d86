package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// maxCreate is how many jobs one command creates.
const maxCreate = 1000

// wish is a job that is to be created.
type wish struct {
	name, retryAfter, sequential string
	data                         json.RawMessage
	first                        time.Time
	repeat                       *job.Repeats
	priority                     *int
	parent                       int64
	mock                         bool
}

// wishOf reads it.
func (q *Request) wishOf(now time.Time) (w wish, err error) {
	steps := []func() error{
		func() (err error) { w.name, err = q.name(true); return err },
		func() (err error) { w.data, err = q.data(); return err },
		func() (err error) { w.priority, err = q.priority(); return err },
		func() (err error) { w.repeat, err = q.repeat(now); return err },
		func() (err error) { w.retryAfter, err = q.retryAfter(); return err },
		func() (err error) { w.first, err = q.at("firstRun"); return err },
		func() (err error) { w.mock, err = q.flag("mockRequest", false); return err },
		func() (err error) { w.parent, _, err = q.parentNumber(); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return w, err
		}
	}
	w.sequential = q.Params["sequentialkey"]
	switch {
	case !readable(w.sequential):
		return w, refuse(402, "Malformed sequentialKey")
	case w.sequential != "" && w.parent != 0:
		return w, refuse(402, "A job with a sequentialKey cannot have a parentJobID")
	}
	return w, unrepeatable(w.repeat != nil, w.sequential != "", w.parent != 0)
}

// unrepeatable refuses a job that is to repeat although it is sequential or a child.
func unrepeatable(repeats, sequential, child bool) error {
	switch {
	case repeats && sequential:
		return refuse(402, "A job with a sequentialKey cannot repeat")
	case repeats && child:
		return refuse(402, "A job with a parentJobID cannot repeat")
	}
	return nil
}

// parentNumber is the number of the parent that a job is to have.
func (q *Request) parentNumber() (int64, bool, error) {
	text := q.Params["parentjobid"]
	if text == "" || text == "0" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, false, refuse(402, "Malformed parentJobID")
	}
	return n, true, nil
}

func (s *Service) createJob(ctx context.Context, q *Request) (*Response, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	w, err := q.wishOf(now)
	if err != nil {
		return nil, err
	}
	n, err := s.make(ctx, q, &w)
	if err != nil {
		return nil, err
	}
	return said(map[string]any{"jobID": n})
}

// make creates a job that is asked for, unless it is to be the only one of its name and there is one.
func (s *Service) make(ctx context.Context, q *Request, w *wish) (int64, error) {
	unique, err := q.flag("unique", false)
	if err != nil {
		return 0, err
	}
	overwrite, err := q.flag("overwrite", true)
	if err != nil {
		return 0, err
	}
	if unique {
		return s.createUnique(ctx, w, overwrite)
	}
	n, _, err := s.create(ctx, w, "")
	return n, err
}

func (s *Service) createJobs(ctx context.Context, q *Request) (*Response, error) {
	if q.Params["jobs"] == "" {
		return nil, refuse(402, "Missing jobs")
	}
	var list []json.RawMessage
	if json.Unmarshal([]byte(q.Params["jobs"]), &list) != nil {
		return nil, refuse(401, "Invalid JSON")
	}
	if len(list) == 0 || len(list) > maxCreate {
		return nil, refuse(402, "Malformed jobs: give 1 to %d", maxCreate)
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	requests, wishes := make([]*Request, len(list)), make([]wish, len(list))
	for i, raw := range list {
		all, err := params(raw)
		if err != nil {
			return nil, refuse(401, "Invalid JSON")
		}
		requests[i] = &Request{Params: all}
		if err := requests[i].known(createParams); err != nil {
			return nil, err
		}
		if wishes[i], err = requests[i].wishOf(now); err != nil {
			return nil, err
		}
		if wishes[i].parent != 0 {
			if _, err := s.parentOf(ctx, wishes[i].parent); err != nil {
				return nil, err
			}
		}
	}
	numbers := make([]int64, 0, len(list))
	for i := 0; i < len(wishes); {
		plain := i // up to there they are created together
		for plain < len(wishes) && wishes[plain].parent == 0 && !requests[plain].unique() {
			plain++
		}
		if plain > i {
			some, err := s.createRoots(ctx, wishes[i:plain])
			if err != nil {
				return nil, err
			}
			numbers, i = append(numbers, some...), plain
			continue
		}
		n, err := s.make(ctx, requests[i], &wishes[i])
		if err != nil {
			return nil, err
		}
		numbers, i = append(numbers, n), i+1
	}
	return said(map[string]any{"jobIDs": numbers})
}

// unique tells whether the job is to be the only one of its name. What is neither yes nor no is refused when it is created.
func (q *Request) unique() bool { return q.Params["unique"]+q.Params["overwrite"] != "" }

// createRoots creates jobs that are neither unique nor children: in as many round trips as one takes. If one cannot be created, others
// may have been, as with one command for each.
func (s *Service) createRoots(ctx context.Context, wishes []wish) ([]int64, error) {
	first, err := s.store.Numbers(ctx, Queue, int64(len(wishes)))
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	numbers, aliases, ids := make([]int64, len(wishes)), make([]string, len(wishes)), make([]job.ID, len(wishes))
	for i := range wishes {
		numbers[i] = first + int64(i)
		aliases[i], ids[i] = aliasOf(numbers[i]), rootID(numbers[i], now, s.store.Shards())
	}
	holders := slices.Clone(ids)
	if err := errors.Join(s.store.ClaimMany(ctx, aliases, holders)...); err != nil {
		return nil, err
	}
	var all []store.Creation
	for i := range wishes {
		if holders[i] != ids[i] { // the store has lost its last writes, and counts again
			if numbers[i], _, err = s.create(ctx, &wishes[i], ""); err != nil {
				return nil, err
			}
			continue
		}
		plan, err := s.planRoot(&wishes[i], numbers[i])
		if err != nil {
			return nil, err
		}
		all = append(all, store.Creation{ID: ids[i], Plan: plan, By: surface})
	}
	_, errs := s.store.CreateMany(ctx, all)
	return numbers, errors.Join(errs...)
}

// queue is that of the job.
func (w *wish) queue() string {
	if w.mock {
		return MockQueue
	}
	return Queue
}

// node is the job as a plan has it.
func (w *wish) node(number int64) (job.Node, error) {
	raw, err := json.Marshal(memo{number, w.parent, w.sequential, w.retryAfter})
	n := job.Node{Type: typeOf(w.name), Queue: w.queue(), Priority: w.priority, Args: w.data, At: w.first, InTime: true, Memo: raw}
	if n.Args == nil {
		n.Args = json.RawMessage(`{}`)
	}
	return n, err
}

// create creates a job, or, if the ID of another one has an alias besides its number, nothing: holder is whose that is.
func (s *Service) create(ctx context.Context, w *wish, alias string) (number int64, holder job.ID, err error) {
	if w.parent != 0 {
		number, err = s.createChild(ctx, w)
		return number, "", err
	}
	for {
		if number, err = s.store.Numbers(ctx, Queue, 1); err != nil {
			return 0, "", err
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return 0, "", err
		}
		id := rootID(number, now, s.store.Shards())
		if alias != "" {
			if holder, err := s.store.Claim(ctx, alias, id); err != nil || holder != id {
				return 0, holder, err
			}
		}
		holder, err := s.store.Claim(ctx, aliasOf(number), id)
		if err != nil {
			return 0, "", err
		}
		if holder != id { // the store has lost its last writes, and counts again
			continue
		}
		return number, "", s.createRoot(ctx, w, number, id)
	}
}

func (s *Service) createRoot(ctx context.Context, w *wish, number int64, id job.ID) error {
	plan, err := s.planRoot(w, number)
	if err == nil {
		_, err = s.store.Create(ctx, id, plan, surface)
	}
	return err
}

// planRoot is the tree of a job that is no child.
func (s *Service) planRoot(w *wish, number int64) (*job.Plan, error) {
	node, err := w.node(number)
	plan := &job.Plan{Nodes: []job.Node{node}, Repeat: w.repeat}
	if w.sequential != "" {
		plan.SequentialKey = sequentialOf(w.queue(), w.sequential, s.store.Shards())
	}
	return plan, err
}

// surface is who creates the jobs.
const surface = "bedrock"

// goPort is the In port of a child that was created while its parent ran: it waits there for the end of that run.
const goPort = "go"

// parentOf returns the parent of a child that is to be created.
func (s *Service) parentOf(ctx context.Context, number int64) (*known, error) {
	p, err := s.find(ctx, number)
	if errors.Is(err, errNoNumber) {
		return nil, refuse(404, "parentJobID does not exist")
	}
	if err != nil {
		return nil, err
	}
	if !p.ID.IsRoot() {
		return nil, refuse(405, "Cannot create grandchildren")
	}
	state, err := s.stateOf(ctx, p)
	if err == nil && state != running && state != runqueued && state != paused {
		err = refuse(405, "Can only create child job when parent is RUNNING, RUNQUEUED or PAUSED")
	}
	return p, err
}

// createChild creates a job below another one. While that one runs, the child waits for the end of the run.
func (s *Service) createChild(ctx context.Context, w *wish) (int64, error) {
	p, err := s.parentOf(ctx, w.parent)
	if err != nil {
		return 0, err
	}
	if p.state[keyChildren] == nil {
		if err := s.store.SetState(ctx, p.ID, map[string]json.RawMessage{keyChildren: json.RawMessage("true")}, nil); err != nil {
			return 0, missing(err)
		}
	}
	number, err := s.store.Numbers(ctx, Queue, 1)
	if err != nil {
		return 0, err
	}
	node, err := w.node(number)
	if err != nil {
		return 0, err
	}
	node.Name, node.Queue = strconv.FormatInt(number, 10), p.Queue
	held := p.Status == job.Running
	if held {
		node.Ports = []job.Port{{Spec: port.Spec{Name: goPort, Dir: port.Input}, Sources: 1}}
	}
	id := job.ID("")
	for {
		nth, err := s.store.Reserve(ctx, p.ID.Tree(), 1)
		if err != nil {
			return 0, missing(err)
		}
		id = p.ID.Nth(nth)
		if _, err = s.store.Create(ctx, id, &job.Plan{Nodes: []job.Node{node}, Parent: p.ID}, surface); err == nil {
			break
		}
		if !errors.Is(err, job.ErrMoved) { // the number of another job
			return 0, fmt.Errorf("creating a child of job %d: %w", w.parent, missing(err))
		}
	}
	if _, err := s.store.Claim(ctx, aliasOf(number), id); err != nil {
		return 0, err
	}
	if held {
		return number, s.release(ctx, p.ID, id)
	}
	return number, nil
}

// release lets a child go that was created while the run of its parent ended, which may not have seen it.
func (s *Service) release(ctx context.Context, parent, child job.ID) error {
	p, err := s.store.Info(ctx, parent)
	if err != nil {
		return missing(err)
	}
	if p.Status == job.Running {
		return nil
	}
	if p.Status.Settled() {
		return s.remove(ctx, child)
	}
	state, err := s.store.State(ctx, parent, keyWaiting)
	if err != nil || state[keyWaiting] == nil {
		return missing(err)
	}
	return missing(s.store.Write(ctx, child, store.Write{Dir: port.Input, Port: goPort, Items: []json.RawMessage{json.RawMessage("true")}}))
}

// createUnique creates a job unless there is one of its name that was created so: that one gets the data, put upon what it has, unless it is
// to stay as it is.
func (s *Service) createUnique(ctx context.Context, w *wish, overwrite bool) (int64, error) {
	alias := uniqueAlias(w.queue(), typeOf(w.name))
	if w.parent != 0 {
		return 0, refuse(402, "A unique job cannot have a parentJobID")
	}
	for {
		number, holder, err := s.create(ctx, w, alias)
		if err != nil || number != 0 {
			return number, err
		}
		k, err := s.look(ctx, holder)
		if errors.Is(err, errNoNumber) || err == nil && nameOf(k.Type) != w.name { // it is over, was not created, or has another name now
			err = s.store.Unclaim(ctx, alias, holder)
			if err == nil || errors.Is(err, job.ErrNotFound) {
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		return k.Number, s.merge(ctx, k, w.data, overwrite)
	}
}

// uniqueAlias is the alias of the job that is the only one of its type in a queue.
func uniqueAlias(queue, typ string) string { return queue + ":" + typ }

// renamed has a job that was the only one of its name be that of the name which it has now, unless there is another one. Its old name is free.
func (s *Service) renamed(ctx context.Context, k *known, typ string) error {
	old, alias := uniqueAlias(k.Queue, k.Type), uniqueAlias(k.Queue, typ)
	holder, err := s.store.Resolve(ctx, old)
	if err == nil && holder == k.ID && old != alias {
		if _, err = s.store.Claim(ctx, alias, k.ID); err == nil {
			err = s.store.Unclaim(ctx, old, k.ID)
		}
	}
	if errors.Is(err, job.ErrNotFound) { // it was not unique, or somebody has freed the name
		return nil
	}
	return err
}

// merge puts data upon that of a job, as a JSON merge patch.
func (s *Service) merge(ctx context.Context, k *known, data json.RawMessage, overwrite bool) error {
	if !overwrite || data == nil {
		return nil
	}
	merged, err := mergePatch(k.data(), data)
	if err != nil {
		return err
	}
	return missing(s.store.SetState(ctx, k.ID, map[string]json.RawMessage{keyData: merged}, nil))
}

// mergePatch returns a JSON value with another one put upon it, as RFC 7396 has it.
func mergePatch(value, patch json.RawMessage) (json.RawMessage, error) {
	var changes, object map[string]json.RawMessage
	if json.Unmarshal(patch, &changes) != nil || changes == nil {
		return patch, nil // no object: it takes the place
	}
	if json.Unmarshal(value, &object) != nil || object == nil {
		object = map[string]json.RawMessage{}
	}
	for key, change := range changes {
		if string(change) == "null" {
			delete(object, key)
			continue
		}
		merged, err := mergePatch(object[key], change)
		if err != nil {
			return nil, err
		}
		object[key] = merged
	}
	return json.Marshal(object)
}
