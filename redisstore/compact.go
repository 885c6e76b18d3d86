package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Small trees whose jobs do nothing unusual are created as one record in place of a hash for each job, and may be completed so:
// compact.lua says what a record is.

const (
	// compactJobs is how many jobs a tree has at most that is created as one record, and compactBytes how many bytes all
	// that has which a record or its definition says of them.
	compactJobs  = 16
	compactBytes = 4096
	// compactLog is how many entries of a log come with one transaction of a record at most.
	compactLog = 100
	// compactState is how many keys of its state one of its jobs changes at most.
	compactState = 500
)

// compactTree is a tree that is created as one record.
type compactTree struct {
	definition []string // of each job, what it has in common with that of all trees of its kind
	digest     string
	keep       string // how long it is kept, or -
	shared     string // what all its jobs have
	lead       string // number of the job that is to run; empty: none is
	own        string // what jobs alone have
	messages   []any  // number of a job, In port, and message, in turn
}

// ownFields are those fields of jobs that differ from tree to tree; so do sharedFields, but not from job to job.
var (
	ownFields    = map[string]bool{"args": true, "memo": true, "labels": true, "def": true}
	sharedFields = map[string]bool{"by": true, "trace": true}
)

// compactOf returns a plan, of which nodesOf has made nodes, as a record, or nil if it is not that simple.
func (s *Store) compactOf(plan *job.Plan, nodes [][]any) *compactTree {
	if !s.records.Load() || len(nodes) > compactJobs || plan.Parent != "" || plan.Unique != nil || plan.SequentialKey != "" || plan.Repeat != nil || plan.TellEnd != nil {
		return nil
	}
	if len(nodes) > 1 && !plan.Nodes[0].Graph {
		return nil // children that end wake a parent that is no graph
	}
	t := &compactTree{definition: make([]string, len(nodes)), keep: cmp.Or(retainField(plan), "-")}
	var all []byte // what the digest is of
	size := 0
	for i, n := range nodes {
		if node := &plan.Nodes[i]; node.Loop || node.InTime || node.Graph && node.Silent || !node.At.IsZero() || i > 0 && (node.Graph || node.Parent != 0) || !t.add(i, n) {
			return nil
		}
		size += len(t.definition[i])
		all = append(append(strconv.AppendInt(all, int64(len(t.definition[i])), 10), '\x1e'), t.definition[i]...)
	}
	if size+len(t.shared)+len(t.own) > compactBytes {
		return nil
	}
	sum := sha256.Sum256(all)
	t.digest = base32.StdEncoding.EncodeToString(sum[:10])
	return t
}

// add adds job i, of which birth.args has made n, and tells whether it is simple enough.
func (t *compactTree) add(i int, n []any) bool {
	leads := n[1] == string(statemachine.Create)
	if !leads && n[1] != string(statemachine.CreateIdle) || leads && t.lead != "" {
		return false
	}
	definition, own, shared := make([]byte, 0, 256), []byte(nil), []byte(nil)
	if leads {
		t.lead = strconv.Itoa(i)
	} else {
		definition = append(definition, "status\x1f"+string(statemachine.Suspended)+"\x1f"...)
	}
	count, _ := n[5].(int)
	fields, rest := n[6:6+count], n[6+count:]
	for f := 0; f < count; f += 2 {
		name, _ := fields[f].(string)
		value := textOf(fields[f+1])
		switch {
		case name == "parent" || name == "retain": // which the record says otherwise
		case name == "subscribed", strings.HasPrefix(name, "f."), strings.HasPrefix(name, "x.o."), strings.HasPrefix(name, "x.") && !leads, strings.Contains(value, " #"), strings.ContainsAny(value, "\x1e\x1f"):
			return false
		case ownFields[name]:
			own = appendField(own, name, value)
		case sharedFields[name]:
			shared = appendField(shared, name, value)
		default:
			definition = appendField(definition, name, value)
		}
	}
	if rest[0] != 0 { // defaults
		return false
	}
	for m := 2; m < len(rest); m += 2 {
		t.messages = append(t.messages, i, rest[m], rest[m+1])
	}
	if len(own) > 0 {
		t.own += "\x1e" + strconv.Itoa(i) + "\x1f" + endless(own)
	}
	t.definition[i], t.shared = endless(definition), endless(shared)
	return true
}

// appendField adds a field to a text, and endless is that text without the end of its last field.
func appendField(to []byte, name, value string) []byte {
	return append(append(append(append(to, name...), '\x1f'), value...), '\x1f')
}

func endless(text []byte) string { return string(bytes.TrimSuffix(text, []byte{'\x1f'})) }

// textOf is a value of a field as Redis gets it.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// args are those of create_compact.lua, with the definition or without it.
func (t *compactTree) args(root job.ID, token string, define bool) []any {
	args := []any{string(root), token, t.digest, 0}
	if define {
		args[3] = len(t.definition)
		for _, d := range t.definition {
			args = append(args, d)
		}
	}
	args = append(args, t.keep, t.shared, t.lead, t.own, len(t.messages)/3)
	return append(args, t.messages...)
}

// definitions are those of records that a store has met.
type definitions struct {
	mu   sync.Mutex
	seen map[string]bool // digests; behind the due key of a shard, those that are there
	not  map[string]bool // digests of trees that do not stay records

	known, before map[string]definition // by digest: those met last, and those before
	runs          map[string]*record    // by tokens of runs that may complete one
}

// mostDefinitions is how many entries each of these maps has at most: they are forgotten then, which does no harm.
const mostDefinitions = 1 << 14

// note adds to a map, and tells whether it had that already.
func note[V any](d *definitions, m *map[string]V, key string, v V) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, is := (*m)[key]; is {
		return true
	}
	if *m == nil || len(*m) >= mostDefinitions {
		*m = map[string]V{}
	}
	(*m)[key] = v
	return false
}

// may tells whether trees of a kind may be records.
func (d *definitions) may(digest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.not[digest]
}

// refused notes why trees of a kind were not made records in a shard: for good, or as their definition has gone.
func (d *definitions) refused(due, digest, why string) {
	switch why {
	case "spread":
		note(d, &d.not, digest, true)
	case "define":
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.seen, due+digest)
	}
}

// worth tells whether a tree is to be created as a record: others of its kind were created before, and stayed records.
func (d *definitions) worth(digest string) bool {
	return d.may(digest) && note(d, &d.seen, digest, true)
}

// createCompact creates a tree as a record if it may be one; else done is false.
func (s *Store) createCompact(ctx context.Context, root job.ID, plan *job.Plan, nodes [][]any) (created, done bool, err error) {
	t := s.compactOf(plan, nodes)
	if t == nil || !s.definitions.worth(t.digest) {
		return false, false, nil
	}
	due, token := s.keys.dueOf(root), rand.Text()
	define := !note(&s.definitions, &s.definitions.seen, due+t.digest, true)
	for again := !define; ; again, define = false, true {
		reply, err := s.run(ctx, scriptCompact, due, t.args(root, token, define)...)
		if err != nil {
			return false, true, err
		}
		var d decoder
		l := d.list(reply)
		switch why, _ := d.at(l, 0).(string); why {
		case "define", "spread", "followed":
			if why == "define" && again {
				continue
			}
			s.definitions.refused(due, t.digest, why)
			return false, false, nil
		}
		created, refused := createdBy(&d, l, root, "")
		if err = s.deliver(ctx, due, &d, d.at(l, 1)); refused != nil {
			err = refused
		}
		return created, true, err
	}
}

// simple tells whether a delta does no more than those of records may: it reads one In port at most, changes state, writes to one
// Out port, closes that, logs, and completes.
func simple(d *store.Delta) bool {
	if d.Outcome != statemachine.Complete || d.Delay != 0 || d.Repeat != nil || d.Next != "" || d.Lease != 0 || d.Leads || d.Handed || d.Idle {
		return false
	}
	if len(d.Spawns)+len(d.Launches)+len(d.Defaults)+len(d.Wakes)+len(d.Looked)+len(d.Released)+len(d.Before) > 0 || d.Woken != 0 {
		return false
	}
	if d.SetPorts != nil || d.Failure != nil || d.Reason != "" || d.Single != "" || d.Needs != nil || d.Progress != nil {
		return false
	}
	if len(d.Set)+len(d.Unset) > compactState || len(d.Takes) > 1 || len(d.Writes) > 1 || len(d.Closes) > 1 {
		return false
	}
	if len(d.Takes) > 0 {
		t := &d.Takes[0]
		if t.Job != "" && t.Job != d.Job || t.Dir != port.Input || t.Head != 0 || t.Port == "" || t.Port == "*" {
			return false
		}
	}
	if len(d.Closes) > 0 && d.Closes[0] == "" {
		return false
	}
	if len(d.Writes) == 0 {
		return true
	}
	w := &d.Writes[0]
	return w.Port != "" && (w.Job == "" || w.Job == d.Job) && w.Dir == port.Output && len(w.Items) <= groupTxs && w.Port != job.ErrorsPort &&
		(len(d.Closes) == 0 || d.Closes[0] == w.Port)
}

// follows tells whether a delta is of the first run of its job, and reads just what the one before it in the transaction writes,
// if there is one.
func follows(d, before *store.Delta) bool {
	g := d.Speculation
	if before == nil || g == nil {
		return before == nil && g == nil
	}
	sent := 0
	if len(before.Writes) > 0 {
		sent = len(before.Writes[0].Items)
	}
	ends := len(before.Closes) > 0
	return g.Version == 0 && g.Touched == 0 && g.Last == "" && g.Limit < 0 && g.Closed == ends && g.Seen == sent && (sent > 0 || ends) &&
		len(d.Takes) == 1 && d.Takes[0].Port == g.Port && d.Takes[0].N == sent
}
