package top

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
)

// How long a read may take, and how much it brings.
const (
	readTime   = time.Minute // a tree of 100,000 jobs takes some seconds
	logLines   = 100
	fullLog    = 1000 // of one that fills the screen
	triggers   = 500
	peekItems  = 20
	stateLines = 1000
	valueBytes = 16 << 10 // of one value or message; there are commands for all of it
	briefBytes = 1 << 10  // of a text that is to be a line or two
)

// topic is what a read is about.
type topic byte

const (
	ofPlace    topic = iota // a tree, or the list
	ofDetails               // of the selected job
	ofStats                 // counters, queues and engines
	ofTriggers              // all of them
)

// request is what one read is to bring.
type request struct {
	topic  topic
	root   job.ID     // of the tree; empty: the list
	filter job.Filter // of the list
	limit  int        // of the list, or of triggers
	graph  *drawing   // how to draw the tree, unless nil
	wants
}

// wants are the details of the selected job that are to be seen.
type wants struct {
	id     job.ID // empty: none
	log    int    // that many entries of its log
	family bool   // its tree, which the list does not have
	peek   job.PortRef
}

// reading is what a read brought.
type reading struct {
	request
	picture  *picture
	details  *details
	stats    *redisstore.Stats
	triggers []*trigger.Status
	err      error // not of details, which have their own
	took     time.Duration
}

// details is what is known of a job beyond its Info.
type details struct {
	of      wants
	err     error // then the rest is what was read before it
	aliases []string
	lock    *job.LockInfo // nil: it is not locked
	state   []string
	log     []logLine
	family  *picture
	waiting []message // in the port that is peeked at
}

// logLine is one line of a job's log.
type logLine struct {
	at     time.Time
	job    job.ID
	text   string
	failed bool
}

// message is a message that waits, in one line and in several.
type message struct {
	line  string
	lines []string
}

// read is a command that asks the source. The one who started it does not start another
// before its reading is there.
func (m *Model) read(r request) tea.Cmd {
	source, now := m.cfg.Source, m.cfg.Now
	return func() tea.Msg {
		ctx, cancel := context.WithTimeoutCause(context.Background(), readTime, errors.New("no answer within "+readTime.String()))
		defer cancel()
		began := now()
		out := reading{request: r}
		err := &out.err
		switch r.topic {
		case ofPlace:
			out.picture, out.err = readPicture(ctx, source, r, now)
		case ofStats:
			out.stats, out.err = source.Stats(ctx)
		case ofTriggers:
			out.triggers, out.err = source.Triggers(ctx, r.limit)
		default:
			out.details = &details{of: r.wants}
			out.details.err = out.details.read(ctx, source, now)
			err = &out.details.err
		}
		if *err != nil && ctx.Err() != nil {
			*err = context.Cause(ctx)
		}
		out.took = now().Sub(began)
		return out
	}
}

func readPicture(ctx context.Context, source Source, r request, now func() time.Time) (*picture, error) {
	if r.root == "" {
		list, err := source.List(ctx, r.filter, r.limit)
		if err != nil {
			return nil, err
		}
		return newList(list, now()), nil
	}
	p, err := readTree(ctx, source, r.root, now)
	if err == nil && r.graph != nil {
		p.drawn = r.graph.draw(p.jobs)
	}
	return p, err
}

func readTree(ctx context.Context, source Source, id job.ID, now func() time.Time) (*picture, error) {
	h, err := source.Find(ctx, string(id))
	if err != nil {
		return nil, err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	p := newPicture(tree, now())
	if len(tree) > 0 && tree[0].ID.IsRoot() && id.IsRoot() {
		if aliases, err := h.Aliases(ctx); err == nil { // else commands have its ID
			p.words.Named(aliases)
		}
	}
	return p, nil
}

func (d *details) read(ctx context.Context, source Source, now func() time.Time) error {
	h, err := source.Find(ctx, string(d.of.id))
	if err != nil {
		return err
	}
	state, err := explain.State(h.State(ctx))
	if err != nil {
		return err
	}
	d.state = linesOf(state)
	if d.aliases, err = h.Aliases(ctx); err != nil {
		return err
	}
	switch lock, locked, err := h.Locked(ctx); {
	case err != nil:
		return err
	case locked:
		d.lock = &lock
	}
	if d.of.log > 0 {
		if d.log, err = readLog(ctx, h, d.of.log); err != nil {
			return err
		}
	}
	if d.of.peek.Port != "" {
		items, err := h.Messages(ctx, d.of.peek.Dir, d.of.peek.Port, peekItems)
		if err != nil {
			return err
		}
		for _, one := range items {
			d.waiting = append(d.waiting, message{brief(string(one.Data)), pretty(one.Data)})
		}
	}
	if d.of.family {
		d.family, err = readTree(ctx, source, d.of.id, now)
	}
	return err
}

// linesOf are the keys of a state with their values.
func linesOf(state map[string]json.RawMessage) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(state)) {
		value := pretty(state[key])
		value[0] = brief(key) + " = " + value[0]
		if lines = append(lines, value...); len(lines) > stateLines {
			return append(lines[:stateLines], "…")
		}
	}
	return lines
}

// pretty is JSON in lines, harmless on a terminal, and cut if it is very long.
func pretty(raw json.RawMessage) []string {
	if len(raw) > valueBytes {
		return []string{brief(string(raw))}
	}
	text := string(raw)
	if indented, err := indent(raw); err == nil {
		text = indented
	}
	lines := strings.Split(text, "\n")
	for n := range lines {
		lines[n] = clean(lines[n])
	}
	return lines
}

// brief is a text in one line, harmless on a terminal, and cut if it is long.
func brief(text string) string {
	if len(text) > briefBytes {
		return clean(text[:briefBytes]) + "…"
	}
	return clean(text)
}

// readLog reads what the last runs did and logged, oldest first.
func readLog(ctx context.Context, h Job, most int) ([]logLine, error) {
	runs, err := h.Runs(ctx, most)
	if err != nil {
		return nil, err
	}
	notes, err := h.Logs(ctx, most)
	if err != nil {
		return nil, err
	}
	var lines []logLine
	for n := range runs {
		lines = append(lines, logLine{at: runs[n].At, job: runs[n].Job, text: brief(explain.Run(&runs[n], explain.Number)), failed: runs[n].Error != ""})
	}
	for _, n := range notes {
		lines = append(lines, logLine{at: n.At, job: n.Job, text: brief(string(n.Entry))})
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	return lines[max(0, len(lines)-most):], nil
}

// portName is a port with the arrow of its direction.
func portName(dir port.Dir, name string) string {
	if dir == port.Output {
		return "→ " + term.Clean(name)
	}
	return "← " + term.Clean(name)
}
