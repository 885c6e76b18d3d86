package redisstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// This file alone turns replies of scripts into Go values. A reply of another shape
// than its script's header says is a bug or a foreign server: it becomes errReply.

// decoder reads a reply; the first thing that does not fit is kept as its error.
type decoder struct {
	err error
	// Those of the job that is decoded, kept for the next as trees have thousands.
	fields  map[string]string
	waiting map[string]int64
}

func (d *decoder) fail(want string, v any) {
	if d.err == nil {
		d.err = fmt.Errorf("unexpected reply from Redis: %T where %s was expected", v, want)
	}
}

// list is a list. An empty one may be an empty text, which costs a server less.
func (d *decoder) list(v any) []any {
	l, ok := v.([]any)
	if !ok && v != "" {
		d.fail("a list", v)
	}
	return l
}

func (d *decoder) at(l []any, i int) any {
	if i >= len(l) {
		d.fail("element "+strconv.Itoa(i), l)
		return nil
	}
	return l[i]
}

func (d *decoder) str(v any) string {
	s, ok := v.(string)
	if !ok {
		d.fail("a string", v)
	}
	return s
}

func (d *decoder) int(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	d.fail("a number", v)
	return 0
}

func (d *decoder) raws(v any) []json.RawMessage {
	l := d.list(v)
	out := make([]json.RawMessage, len(l))
	for i := range l {
		out[i] = json.RawMessage(d.str(l[i]))
	}
	return out
}

// rawOrNil is a field with JSON; nil if it is absent.
func rawOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// pairs calls fn for each field and value of a flat list.
func (d *decoder) pairs(v any, fn func(field string, value any)) {
	l := d.list(v)
	for i := 0; i+1 < len(l); i += 2 {
		fn(d.str(l[i]), l[i+1])
	}
}

func (d *decoder) rawMap(v any) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	d.pairs(v, func(f string, v any) { m[f] = json.RawMessage(d.str(v)) })
	return m
}

// todo is what a script left to do.
type todo struct {
	shard         int
	notifications []delivery.Notification // to be sent
	members       []string                // of `due` that are no jobs, and want to be looked at now
}

// add adds what another call of the shard left to do.
func (t *todo) add(more todo) {
	for _, m := range more.members {
		if !slices.Contains(t.members, m) {
			t.members = append(t.members, m)
		}
	}
	for _, b := range more.notifications {
		at := slices.IndexFunc(t.notifications, func(known delivery.Notification) bool { return known.Queue == b.Queue })
		if at < 0 {
			t.notifications = append(t.notifications, b)
			continue
		}
		known := &t.notifications[at]
		known.Gen = max(known.Gen, b.Gen)
		for i, typ := range b.Types {
			if n := slices.Index(known.Types, typ); n >= 0 {
				known.Priorities[n] = b.Priorities[i] // as it is now
			} else {
				known.Types, known.Priorities = append(known.Types, typ), append(known.Priorities, b.Priorities[i])
			}
		}
	}
}

// todo decodes what wakes() in ready.lua returns.
func (d *decoder) todo(v any, shard int) todo {
	l, t := d.list(v), todo{shard: shard}
	for i := 0; i+3 < len(l); i += 4 {
		name, gen := d.str(l[i]), d.str(l[i+1])
		if gen == "" {
			t.members = append(t.members, name)
			continue
		}
		b := delivery.Notification{Queue: name, Shard: shard, Gen: d.int(gen), Types: strings.Fields(d.str(l[i+2]))}
		for text := range strings.FieldsSeq(d.str(l[i+3])) {
			b.Priorities = append(b.Priorities, int(d.int(text)))
		}
		if len(b.Priorities) != len(b.Types) {
			d.fail("a priority of each type", l[i+3])
			continue
		}
		t.notifications = append(t.notifications, b)
	}
	return t
}

// descriptor decodes what the job's hash says of a port, see descriptor in create.go.
func (d *decoder) descriptor(p *job.PortInfo, id job.ID, text string) {
	limit, rest, more := strings.Cut(text, " ")
	p.Limit = int(d.int(limit))
	for more {
		var part string
		part, rest, more = strings.Cut(rest, " ")
		switch {
		case part == "", part == ">": // as long as what lies there is being moved on
		case part == "+":
			p.Keep = true
		case part[0] == '#':
			p.Channels = append(p.Channels, part[1:])
		default:
			p.Wired = true
			var edge []job.PortRef
			for end := range strings.SplitSeq(part, ",") {
				at, name, _ := strings.Cut(strings.TrimSuffix(end, "~"), ".")
				dir := len(at) - 1
				edge = append(edge, job.PortRef{Job: id.Tree().Nth(int(d.int(at[:dir]))), Dir: port.Dir(at[dir]), Port: name})
			}
			p.Edges = append(p.Edges, edge)
		}
	}
}

// refusal turns a script's reason, which may name a port or a child of a job, into an error.
func refusal(reason string, id job.ID) error {
	reason, about, named := strings.Cut(reason, " ")
	if reason == "large" {
		return fmt.Errorf("%w: job %s: it comes to %s values (each port that messages reach counts %d besides them, a key of the state twice), "+
			"at most %d are allowed in one commit or call; call Checkpoint in between, or write it in several calls", job.ErrTooLarge, id, about, job.PortWrites, job.MaxWrites)
	}
	if named {
		return namedRefusal(reason, about)
	}
	switch reason {
	case "", "ok":
		return nil
	case "gone":
		return id.Missing()
	case "fenced":
		return fmt.Errorf("job %s: %w", id, job.ErrFenced)
	case "moved":
		return fmt.Errorf("job %s: %w", id, job.ErrMoved)
	case "timers":
		return fmt.Errorf("%w: job %s asks for runs at more than %d times", job.ErrTooLarge, id, job.MaxTimers)
	case "leftovers":
		return fmt.Errorf("%w: what is left of an earlier tree %s is being removed; try again in a minute", job.ErrStatus, id)
	case "deleting":
		return fmt.Errorf("%w: job %s is being deleted by somebody else", job.ErrStatus, id)
	case "parent":
		return fmt.Errorf("%w: job %s has a parent already; disown it first", job.ErrStatus, id)
	case "ended":
		return fmt.Errorf("%w: the parent is terminating or terminated", job.ErrStatus)
	case "node":
		return fmt.Errorf("%w: job %s is a node of a graph, which knows it by its name: it keeps that", job.ErrStatus, id)
	case "adopted":
		return fmt.Errorf("%w: the parent of job %s lies in another tree and knows it by its name: disown it, and adopt it under another one", job.ErrStatus, id)
	case "graph":
		return fmt.Errorf("%w: job %s is a graph, or belongs to one: it has no runs of its own and its children stay its own", job.ErrStatus, id)
	}
	return fmt.Errorf("%w: job %s is %s", job.ErrStatus, id, reason)
}

// namedRefusal is refusal for a reason that names a child, or a port, of a job.
func namedRefusal(reason, about string) error {
	of, name, _ := strings.Cut(about, " ")
	if reason == "exists" {
		return fmt.Errorf("%w: job %s has a child %q; take another name, or use that child", job.ErrExists, of, name)
	}
	dir, name, _ := strings.Cut(name, " ")
	side := "In"
	if dir == "o" {
		side = "Out"
	}
	if reason == "closed" {
		return fmt.Errorf("%w %q of job %s is closed: nothing more can be written to it", job.ErrPort, name, of)
	}
	return fmt.Errorf("%w: job %s has no %s port %q, or it was removed since the run began; "+
		"give the job that port, or use one that it has", job.ErrPort, of, side, name)
}

// crashes decodes how many runs since the last commit ended without a word, or lapsed: a version, and how
// many since that.
func (d *decoder) crashes(text string, version int64) int {
	if v, n, ok := strings.Cut(text, ":"); ok && d.int(v) == version {
		return int(d.int(n))
	}
	return 0
}

// result decodes what made() in commit.lua returns, joined to one text.
func (d *decoder) result(v any, id job.ID) store.Result {
	parts := strings.Split(d.str(v), "\x1f")
	if len(parts) < 5 {
		d.fail("a result", v)
		return store.Result{}
	}
	return store.Result{
		Applied: int(d.int(parts[0])),
		Refused: refusal(parts[1], id),
		Again:   d.int(parts[2]) == 1,
		Full:    d.int(parts[3]) > 0,
		Room:    int(d.int(parts[4])),
		Held:    len(parts) > 5,
	}
}

// snapshot decodes what begin() in run.lua returns.
func (d *decoder) snapshot(v any, id job.ID, token string) (*store.Snapshot, error) {
	l := d.list(v)
	switch why := d.str(d.at(l, 0)); why {
	case "ok":
	case "status":
		return nil, refusal(d.str(d.at(l, 1)), id)
	case "rate":
		return nil, fmt.Errorf("%w: job %s ran %d times this minute", job.ErrRate, id, d.int(d.at(l, 1)))
	case "idle":
		return nil, fmt.Errorf("%w: job %s of type %s ran %d times in a row this minute, and read, wrote and spawned nothing",
			job.ErrHotLoop, id, d.str(d.at(l, 2)), d.int(d.at(l, 1)))
	case "limit":
		return nil, fmt.Errorf("%w: job %s waits for its turn in limit %s of %s", job.ErrLimit, id, d.str(d.at(l, 1)), d.str(d.at(l, 2)))
	case "locked":
		return nil, fmt.Errorf("%w: job %s for another %d ms", job.ErrLocked, id, d.int(d.at(l, 1)))
	default:
		return nil, refusal(why, id)
	}
	s := d.look(id, d.at(l, 2), d.at(l, 3), d.at(l, 4))
	s.Token, s.Shutdown = token, s.Info.Status == statemachine.Terminating
	for _, b := range d.list(d.at(l, 5)) {
		box := d.list(b)
		n := max(len(box)-3, 0) // behind the messages
		s.In = append(s.In, store.Inbox{
			Port: d.str(d.at(box, n)), Head: d.int(d.at(box, n+1)), Len: int(d.int(d.at(box, n+2))), Items: d.raws(box[:n]),
		})
	}
	for _, next := range d.list(d.at(l, 6)) {
		one := d.list(next)
		s.Row = append(s.Row, d.look(job.ID(d.str(d.at(one, 0))), d.at(one, 1), d.at(one, 2), d.at(one, 3)))
	}
	if len(l) > 7 {
		woken := d.list(l[7])
		s.WokenTo = d.int(d.at(woken, 0))
		for i := 1; i+1 < len(woken); i += 2 {
			s.Woken = append(s.Woken, store.Kin{Name: d.str(woken[i]), ID: job.ID(d.str(woken[i+1]))})
		}
	}
	return s, d.err
}

// idleRuns comes before a count of runs without progress: IDLE in rate.lua.
const idleRuns = "idle "

// look decodes what look() in run.lua returns of a job, but its inboxes.
func (d *decoder) look(id job.ID, fields, state, defaults any) *store.Snapshot {
	s := &store.Snapshot{Defaults: d.rawMap(defaults)}
	if i := d.info(id, fields, []any{}, defaults); i != nil {
		s.Info = *i
	}
	s.Loop = d.fields["loop"] == "1"
	if n := d.fields["touched"]; n != "" {
		s.Touched = d.int(n)
	}
	if minute, n, ok := strings.Cut(d.fields["rate"], ":"); ok && !strings.HasPrefix(minute, idleRuns) {
		s.Rate = int(d.int(n))
	}
	if s.Whole = state != nil; s.Whole {
		s.State = d.rawMap(state)
	}
	return s
}

// infos decodes the jobs that tree_walk read; those that do not exist are left out.
func (d *decoder) infos(v any) []*job.Info {
	var infos []*job.Info
	for _, v := range d.list(v) {
		one := d.list(v)
		i := d.info(job.ID(d.str(d.at(one, 0))), d.at(one, 1), d.at(one, 2), d.at(one, 3))
		if i == nil {
			continue
		}
		i.Next, i.Lease = d.time(d.at(one, 4)), d.time(d.at(one, 7))
		if place := d.str(d.at(one, 5)); place != "" {
			i.Woke = d.int(place)
		}
		if when := d.str(d.at(one, 6)); when == "kept" {
			i.Unread = true
		} else if i.Status.Settled() || i.Status == statemachine.Failed { // else that is not true any more
			i.Expires = d.time(when)
		}
		infos = append(infos, i)
	}
	return infos
}

// options decodes what optionsField returns.
func (d *decoder) options(text string) *job.RunOptions {
	if text == "" {
		return nil
	}
	var n [4]int64
	for i, word := range strings.Fields(text) {
		if i < len(n) {
			n[i] = d.int(word)
		}
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return &job.RunOptions{Tries: int(n[0]), Backoff: ms(n[1]), MaxBackoff: ms(n[2]), Timeout: ms(n[3])}
}

// time decodes milliseconds since 1970; an empty text is no time.
func (d *decoder) time(v any) time.Time {
	if text := d.str(v); text != "" {
		return time.UnixMilli(d.int(text)).UTC()
	}
	return time.Time{}
}

// brief decodes briefFields of a job, or all but the last of them.
func (d *decoder) brief(id job.ID, fields []string, values []any) *job.Info {
	text := func(n int) string {
		s, _ := values[n].(string) // nil: the job has no such field
		return s
	}
	i := &job.Info{
		ID: id, Status: statemachine.Status(text(0)), Type: baseType(text(1)), Queue: text(2), Parent: job.ID(text(3)),
		Created: d.time(text(5)), Ran: d.time(text(6)),
	}
	for n, field := range fields {
		switch field {
		case "name":
			i.Name = text(n)
		case "labels":
			i.Labels = d.labels(text(n))
		case "key":
			i.SequentialKey = text(n)
		case "unique":
			i.UniqueKey = uniqueKey(text(n))
		case "blocked":
			i.Blocked = text(n) > "0"
		}
	}
	if i.Joining = text(4) == "1"; i.Joining {
		i.Parent = "" // perhaps: who asks further will see
	}
	return i
}

// needs decodes what the job's hash says of its type.
func (d *decoder) needs(i *job.Info, text, written string) {
	if i.Type = text; strings.IndexByte(text, '@') < 0 && written == "" {
		return
	}
	n := job.ParseNeeds(text, written)
	i.Type, i.Needs = n.Type, &n
	if n.Version > 1 {
		i.TypeVersion = n.Version
	}
}

// baseType is a type without what else an engine must have.
func baseType(text string) string {
	name, _, _ := strings.Cut(text, "@")
	return name
}

// labels decodes what the job's hash says of its labels.
func (d *decoder) labels(text string) (labels map[string]string) {
	if text != "" && json.Unmarshal([]byte(text), &labels) != nil {
		d.fail("labels", text)
	}
	return labels
}

// info decodes the hash of a job; nil if there is none.
func (d *decoder) info(id job.ID, hash, lengths, defaults any) *job.Info {
	if d.fields == nil {
		d.fields, d.waiting = map[string]string{}, map[string]int64{}
	}
	f, waiting := d.fields, d.waiting
	clear(f)
	clear(waiting)
	if joined, ok := hash.(string); ok { // see tree_walk.lua
		var k, v string
		for joined != "" {
			k, joined, _ = strings.Cut(joined, "\x1f")
			v, joined, _ = strings.Cut(joined, "\x1f")
			f[k] = v
		}
	} else {
		d.pairs(hash, func(k string, v any) { f[k] = d.str(v) })
	}
	if f["status"] == "" {
		return nil
	}
	n := func(k string) int64 {
		if f[k] == "" {
			return 0
		}
		return d.int(f[k])
	}
	at := func(k string) time.Time { return d.time(f[k]) }
	i := &job.Info{
		ID: id, Name: f["name"], Queue: f["queue"], Graph: f["graph"] == "1",
		Status: statemachine.Status(f["status"]), Reason: f["reason"], Parent: job.ID(f["parent"]), By: f["by"],
		Created: at("created"), Ran: at("ran"), Queued: at("queued"),
		Steps: n("step"), Tries: int(n("tries")), Version: n("version"), Last: f["last"], Joining: f["joining"] == "1",
		Crashes: d.crashes(f["deaths"], n("version")), Lapses: d.crashes(f["lapses"], n("version")),
		Started: f["started"] == "1", Blocked: n("blocked") > 0,
		Definition: f["def"], InstanceOf: f["of"],
		Policy: job.FailurePolicy(f["policy"]), Single: int(n("single")),
		Token: strings.TrimSuffix(f["token"], "+"), Due: dueIn(n("round"), at("due")),
	}
	d.needs(i, f["type"], f["written"])
	if f["priority"] != "" {
		i.Priority = new(int(n("priority")))
	}
	if i.Status.Settled() || i.Status == statemachine.Failed {
		i.Ended = at("ended")
	}
	i.Args, i.Memo = rawOrNil(f["args"]), rawOrNil(f["memo"])
	if f["messages"] != "" {
		i.MessageTypes = store.DecodeTypes(f["messages"])
	}
	i.Options, i.Repeat = d.options(f["options"]), d.repeats(f["repeat"], f["repeated"])
	i.Labels, i.Trace, i.SequentialKey = d.labels(f["labels"]), job.StoredTrace(f["trace"]), f["key"]
	i.UniqueKey = uniqueKey(f["unique"])
	i.Progress = d.progress(f["progress"])
	i.Retain, i.Release = d.retention(f["retain"]), f["retain"] == releaseField
	d.pairs(lengths, func(k string, v any) { waiting[k] = d.int(v) })
	d.ports(i, d.rawMap(defaults), n)
	return i
}

// isPort tells whether a field describes a port.
func isPort(field string) bool {
	return strings.HasPrefix(field, "i.") || strings.HasPrefix(field, "o.")
}

// progress reads how far a job is, as progressArg writes it; nil: it says nothing.
func (d *decoder) progress(text string) *job.Progress {
	if text == "" {
		return nil
	}
	done, rest, _ := strings.Cut(text, " ")
	total, words, _ := strings.Cut(rest, " ")
	if p := (job.Progress{Done: int(d.int(done)), Total: int(d.int(total)), Text: words}); p != (job.Progress{}) {
		return &p
	}
	return nil
}

// ports adds the ports that the fields tell of; n is a field that is a number.
func (d *decoder) ports(i *job.Info, values map[string]json.RawMessage, n func(string) int64) {
	f, waiting := d.fields, d.waiting
	some := 0
	for k := range f {
		if isPort(k) {
			some++
		}
	}
	i.Ports = make([]job.PortInfo, 0, some)
	for k, v := range f {
		if !isPort(k) {
			continue
		}
		dir, name := k[:1], k[2:]
		p := job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Dir(dir[0])}}
		d.descriptor(&p, i.ID, v)
		if p.Default = values[name]; p.Dir == port.Output {
			p.Default = values["o."+name]
		}
		p.Waiting = waiting[k]
		p.Total = n("h."+k) + p.Waiting
		p.Sources, p.Fed = int(n("n."+k)), f["n."+k] != ""
		p.Closed = f["x."+k] == "1"
		i.Ports = append(i.Ports, p)
	}
	for _, pair := range strings.Fields(f["subscribed"]) {
		name, channel, _ := strings.Cut(pair, "=")
		for k := range i.Ports {
			if i.Ports[k].Dir == port.Input && i.Ports[k].Name == name {
				i.Ports[k].Channels = append(i.Ports[k].Channels, channel)
			}
		}
	}
	sort.Slice(i.Ports, func(a, b int) bool {
		p, q := i.Ports[a], i.Ports[b]
		return p.Dir < q.Dir || p.Dir == q.Dir && p.Name < q.Name
	})
}
