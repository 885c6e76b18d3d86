package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Create implements store.Creator.
func (s *Store) Create(ctx context.Context, root job.ID, plan *job.Plan, by string) (bool, error) {
	due := s.keys.dueOf(root)
	nodes, err := s.nodesOf(root, plan, by)
	if err != nil {
		return false, err
	}
	if created, done, err := s.createCompact(ctx, root, plan, nodes); done {
		return created, err
	}
	large := ""
	if len(createParts(nodes)) > 1 {
		large = "1"
		if fresh, err := s.createBelow(ctx, root, plan, nodes[1:]); err != nil || !fresh {
			return false, err
		}
		nodes = nodes[:1]
	}
	args := createCall(root, plan, large, nodes)
	reply, err := s.run(ctx, scriptCreate, due, args...)
	if err != nil {
		return false, err
	}
	var d decoder
	l := d.list(reply)
	created, refused := createdBy(&d, l, root, plan.Parent)
	if refused == nil {
		s.foretell(ctx, root, plan)
	}
	err = s.deliver(ctx, due, &d, d.at(l, 1)) // of a refusal, too: what is left may be an order that nobody has carried out
	if refused != nil {
		return false, refused
	}
	return created, err
}

// nodesOf are the jobs of a plan as create_next() in plan.lua reads them.
func (s *Store) nodesOf(root job.ID, plan *job.Plan, by string) ([][]any, error) {
	if err := s.checkHome(root, plan); err != nil {
		return nil, err
	}
	digest := plan.Digest()
	plan, err := s.secrets.hidePlan(plan, root.Tree(), root.Number())
	if err != nil {
		return nil, err
	}
	return planArgs(plan, root, root.Number(), plan.Parent, by, digest), nil
}

// createCall are the arguments of create.lua.
func createCall(root job.ID, plan *job.Plan, large string, nodes [][]any) []any {
	args := []any{string(root), string(plan.Parent), plan.Nodes[0].Name, rand.Text(), large, uniqueBy(plan), len(plan.Nodes), len(nodes)}
	for _, n := range nodes {
		args = append(args, n...)
	}
	return args
}

// createdBy tells what create.lua says of a job that it was to create.
func createdBy(d *decoder, l []any, root, parent job.ID) (created bool, err error) {
	why, refused := d.at(l, 0).(string)
	if holder, is := strings.CutPrefix(why, uniqueReply); is {
		return false, &job.DuplicateError{ID: job.ID(holder)}
	}
	if refused && (why == "leftovers" || why == "moved") {
		return false, refusal(why, root)
	} else if refused {
		return false, fmt.Errorf("under parent %s: %w", parent, refusal(why, parent))
	}
	return d.int(d.at(l, 0)) == 1, d.err
}

// foretell tells those who sweep of the first time that a job of a plan waits for.
func (s *Store) foretell(ctx context.Context, root job.ID, plan *job.Plan) {
	first := int64(0)
	for i := range plan.Nodes {
		if at := plan.Nodes[i].At; !at.IsZero() && (first == 0 || at.UnixMilli() < first) {
			first = at.UnixMilli()
		}
	}
	if first != 0 {
		s.broker.Due(ctx, root.Shard(s.keys.shards), first)
	}
}

const (
	// createBatch is how many jobs one script creates, createValues about how many values and createBytes how many bytes
	// they have.
	createBatch  = 300
	createValues = 12_000
	createBytes  = 2 << 20
)

// createParts splits jobs into those that one script creates.
func createParts(nodes [][]any) [][][]any {
	var parts [][][]any
	from, values, bytes := 0, 0, 0
	for i, n := range nodes {
		size := 0
		for _, v := range n {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if i > from && (i-from == createBatch || values+len(n) > createValues || bytes+size > createBytes) {
			parts = append(parts, nodes[from:i])
			from, values, bytes = i, 0, 0
		}
		values, bytes = values+len(n), bytes+size
	}
	return append(parts, nodes[from:])
}

// createBelow creates the jobs of a large plan but the first, where nobody sees them yet.
// fresh is false if the first one exists already.
func (s *Store) createBelow(ctx context.Context, first job.ID, plan *job.Plan, nodes [][]any) (fresh bool, err error) {
	due, isRoot := s.keys.dueOf(first), ""
	if first.IsRoot() {
		isRoot = "1"
	}
	for _, part := range createParts(nodes) {
		args := []any{string(first), isRoot, uniqueBy(plan), len(nodes) + 1, len(part)}
		for _, n := range part {
			args = append(args, n...)
		}
		reply, err := s.run(ctx, scriptPart, due, args...)
		if err != nil {
			return false, err
		}
		var d decoder
		why := d.str(reply)
		holder, is := strings.CutPrefix(why, uniqueReply)
		switch {
		case is:
			return false, &job.DuplicateError{ID: job.ID(holder)}
		case why == "leftovers":
			return false, refusal(why, first)
		case why != "1":
			return false, d.err
		}
		failpoint.Hit(failpoint.MidSpawnChildren)
	}
	return true, nil
}

// planArgs encodes each job of a plan as create_next() in plan.lua reads it. The plan's root
// gets number base of the tree, the others those after it. digest is the plan's, if anybody
// will ask for it.
func planArgs(plan *job.Plan, tree job.ID, base int, parent job.ID, by, digest string) [][]any {
	children := make([]int, len(plan.Nodes))
	for i := 1; i < len(plan.Nodes); i++ {
		children[plan.Nodes[i].Parent]++
	}
	all := make([][]any, len(plan.Nodes))
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		up, inGraph := parent, false
		if i > 0 {
			up, inGraph = tree.Nth(base+n.Parent), plan.Nodes[n.Parent].Graph
		}
		b := birth{node: n, id: tree.Nth(base + i), parent: up, inGraph: inGraph, children: children[i], by: by}
		b.trace, b.key = plan.Trace.String(), plan.SequentialKey
		if i == 0 {
			b.digest, b.retain, b.tell, b.repeat = digest, retainField(plan), plan.TellEnd, plan.Repeat
			if digest != "" && len(plan.Nodes) <= store.MaxPatch {
				b.messages = store.EncodeTypes(plan.MessageTypes())
			}
		}
		all[i] = b.args(func(i int) int { return base + i })
	}
	return all
}

// birth is one job to be created.
type birth struct {
	node       *job.Node
	id, parent job.ID
	inGraph    bool // its parent is a graph
	children   int
	by, digest string
	retain     string
	trace      string
	key        string // that its tree has, see job.SequentialKey
	tell       *job.PortRef
	repeat     *job.Repeats
	messages   string // what the job's hash says of the Go types of messages, if it is a graph that can be patched
}

// args encodes it as create_next() in plan.lua reads it.
func (b birth) args(number func(int) int) []any {
	n := b.node
	event, at := creation(n)
	if at == "" {
		at = b.usual()
	}
	args := []any{string(b.id), string(event), at, string(b.parent), n.Name}
	fields, defaults, initial := nodeFields(n, number)
	fields = append(fields, "parent", string(b.parent), "by", b.by)
	if b.inGraph {
		fields = append(fields, "pgraph", "1")
	}
	if n.Graph {
		fields = append(fields, "graph", "1", "open", b.children, "broken", 0)
	}
	if b.digest != "" {
		fields = append(fields, "def", b.digest)
	}
	if b.messages != "" {
		fields = append(fields, "messages", b.messages)
	}
	if b.retain != "" {
		fields = append(fields, "retain", b.retain)
	}
	if b.key != "" {
		fields = append(fields, "key", b.key)
	}
	if b.trace != "" {
		fields = append(fields, "trace", b.trace)
	}
	if b.repeat != nil {
		fields = append(fields, repeatFields(b.repeat, n.At)...)
	}
	if b.tell != nil {
		fields = append(fields, "tell", tellField(b.tell))
	}
	args = append(append(args, len(fields)), fields...)
	args = append(append(args, len(defaults)), defaults...)
	return append(append(args, len(initial)), initial...)
}

// usual says in place of a time that a job has nothing of what few have, as node() in plan.lua reads it; else it is empty.
func (b birth) usual() string {
	n := b.node
	switch {
	case n.Graph, n.Loop, n.Silent, n.InTime, n.Priority != nil, b.key != "", n.OnFailure != "",
		slices.ContainsFunc(n.Ports, func(p job.Port) bool { return len(p.Channels) > 0 }):
		return ""
	case b.inGraph:
		return "+"
	}
	return "-"
}

// tellField is what the job's hash says of who is told of its end; empty: nobody is.
func tellField(to *job.PortRef) string {
	if to == nil {
		return ""
	}
	return string(to.Job) + " " + to.Port
}

// creation says how a planned job enters its life: jobs that are fed by others, and
// graphs, begin suspended, unless they have messages already.
func creation(n *job.Node) (event statemachine.Event, at string) {
	initial := slices.ContainsFunc(n.Ports, func(p job.Port) bool { return len(p.Initial) > 0 })
	switch {
	case n.Graph || n.Wired() && !initial:
		return statemachine.CreateIdle, ""
	case !n.At.IsZero():
		return statemachine.CreateLater, strconv.FormatInt(n.At.UnixMilli(), 10)
	}
	return statemachine.Create, ""
}

// nodeFields are the fields of a job's hash, given the number of each node of its plan, its defaults as pairs of port and message, and
// its first messages as such pairs.
func nodeFields(n *job.Node, number func(int) int) (fields, defaults, initial []any) {
	queue := n.Queue
	if queue == "" {
		queue = job.DefaultQueue
	}
	fields = []any{"type", typeField(n), "queue", queue, "name", n.Name}
	if n.Priority != nil {
		fields = append(fields, "priority", *n.Priority)
	}
	if n.InTime {
		fields = append(fields, "round", roundOf(n.At))
		if !n.At.IsZero() {
			fields = append(fields, "due", n.At.UnixMilli())
		}
	}
	if n.Options != (job.RunOptions{}) {
		fields = append(fields, "options", optionsField(n.Options))
	}
	if n.Args != nil {
		fields = append(fields, "args", []byte(n.Args))
	}
	if len(n.Memo) > 0 {
		fields = append(fields, "memo", []byte(n.Memo))
	}
	specs := make([]port.Spec, len(n.Ports))
	for i := range n.Ports {
		p := &n.Ports[i]
		specs[i] = p.Spec
		name := portField(p.Dir, p.Name)
		fields = append(fields, name, descriptor(p, number))
		if p.Sources > 0 || p.Loops > 0 { // a port that only feedback feeds is fed, too
			fields = append(fields, "n."+name, p.Sources)
		}
		if p.Loops > 0 {
			fields = append(fields, "f."+name, p.Loops)
		}
		if p.Closed {
			fields = append(fields, "x."+name, "1")
		}
		for _, m := range p.Initial {
			initial = append(initial, p.Name, []byte(m))
		}
		if p.Default != nil {
			defaults = append(defaults, defaultField(p.Dir, p.Name), []byte(p.Default))
		}
	}
	if len(defaults) > 0 {
		fields = append(fields, "defaults", defaultMarks(defaults))
	}
	if subscribed := subscriptions(specs); subscribed != "" {
		fields = append(fields, "subscribed", subscribed)
	}
	if n.OnFailure != "" && n.OnFailure != job.FailGraph {
		fields = append(fields, "policy", string(n.OnFailure))
	}
	if n.InstanceOf != "" {
		fields = append(fields, "of", n.InstanceOf)
	}
	if n.Loop {
		fields = append(fields, "loop", "1")
	}
	if len(n.Labels) > 0 {
		fields = append(fields, "labels", labelsField(n.Labels))
	}
	switch {
	case n.Silent:
		fields = append(fields, "silent", "1")
	case hearsStatuses(specs):
		fields = append(fields, "silent", "2")
	}
	return fields, defaults, initial
}

// The field `round` of a job that runs in the order of time, which TIMES and EPOCH in ready.lua are: no less than the first, and that many ms
// since the second.
const (
	firstTime = 1 << 36
	lastTime  = 1<<40 - 1
	timesFrom = 1577836800000
)

// roundOf is that field of a job that is to run at a time; the zero one is when it is created.
func roundOf(at time.Time) int64 {
	if at.IsZero() {
		return firstTime
	}
	return min(max(at.UnixMilli()-timesFrom, firstTime+1), lastTime)
}

// dueIn is when a job is due by that field and the field `due`, which jobs do not have that were created before it was kept; zero: the job
// does not run in the order of time.
func dueIn(round int64, due time.Time) time.Time {
	if round < firstTime {
		return time.Time{}
	}
	if !due.IsZero() {
		return due
	}
	return time.UnixMilli(round + timesFrom).UTC()
}

// optionsField is what the job's hash says of the options of its node: tries, then backoff, greatest backoff and timeout in
// ms.
func optionsField(o job.RunOptions) string {
	return fmt.Sprintf("%d %d %d %d", o.Tries, o.Backoff.Milliseconds(), o.MaxBackoff.Milliseconds(), o.Timeout.Milliseconds())
}

// typeField is what the job's hash says of its type: with the version that an engine must have, if args ask for one.
func typeField(n *job.Node) string {
	return (&job.Needs{Type: n.Type, Version: typeVersion(n)}).String()
}

// typeVersion is the version of its type that a planned job asks for.
func typeVersion(n *job.Node) int {
	if n.Args == nil {
		return 1
	}
	return max(n.TypeVersion, 1)
}

// defaultMarks tells which ports a definition gives defaults, pairs of port and message, as "port=hash port=hash": a patch
// changes those that the new definition changes, and leaves what was set meanwhile.
func defaultMarks(defaults []any) string {
	var marks []string
	for i := 0; i < len(defaults); i += 2 {
		h := fnv.New64a()
		raw, _ := defaults[i+1].([]byte)
		_, _ = h.Write(raw) // it returns no error
		marks = append(marks, fmt.Sprintf("%s=%x", defaults[i], h.Sum64()))
	}
	return strings.Join(marks, " ")
}

// labelsField is what the job's hash says of its labels: JSON, in the order of their keys.
func labelsField(labels map[string]string) []byte {
	raw, _ := json.Marshal(labels) // texts always encode
	return raw
}

// defaultField is where the defaults of a job have that of a port.
func defaultField(dir port.Dir, name string) string {
	if dir == port.Output {
		return "o." + name
	}
	return name
}

func portField(dir port.Dir, name string) string { return string(byte(dir)) + "." + name }

// subscriptions lists what In ports subscribe to: "port=channel port=channel".
func subscriptions(ports []port.Spec) string {
	var pairs []string
	for _, s := range ports {
		for _, c := range s.Channels {
			if s.Dir == port.Input {
				pairs = append(pairs, s.Name+"="+c)
			}
		}
	}
	return strings.Join(pairs, " ")
}

// hearsStatuses tells whether a job subscribes to the statuses of jobs. Its own are then
// not published: else a message could be the cause of itself.
func hearsStatuses(ports []port.Spec) bool {
	for _, s := range ports {
		for _, c := range s.Channels {
			if s.Dir == port.Input && port.HearsStatuses(c) {
				return true
			}
		}
	}
	return false
}

// descriptor is what the job's hash says of a port: its limit, then its edges and the
// channels that it publishes to, with a space before each; an edge is its ends, like
// "3i.words,4i.words", with a ~ behind those that are feedback; a channel has a # before it;
// a + says that the port keeps what it publishes.
func descriptor(p *job.Port, number func(int) int) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(p.Limit))
	for _, e := range p.Edges {
		for i, t := range e {
			b.WriteByte(" ,"[min(i, 1)])
			b.WriteString(strconv.Itoa(number(t.Node)))
			b.WriteByte(byte(t.Dir))
			b.WriteByte('.')
			b.WriteString(t.Port)
			if t.Feedback {
				b.WriteByte('~')
			}
		}
	}
	for _, c := range p.Channels {
		if p.Dir == port.Output {
			b.WriteString(" #" + c)
		}
	}
	if p.Keep {
		b.WriteString(" +")
	}
	return b.String()
}
