package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// binder is a run that gives a worker's handles the ports of its job.
type binder Run

// BindIn implements port.Binder.
func (b *binder) BindIn(name string) port.Reader {
	if in := b.ins.get(name); in != nil {
		in.opened = true
		return in
	}
	// The job was created by an older program whose worker had no such port: it is empty.
	in := &inbox{run: (*Run)(b), dir: port.Input, name: name}
	for _, s := range b.layout.Specs() {
		if s.Dir == port.Input && s.Name == name {
			in.fallback = s.Default
		}
	}
	return in
}

// BindOut implements port.Binder.
func (b *binder) BindOut(name string) port.Writer {
	if out := b.outs.get(name); out != nil {
		return handleOut{out}
	}
	return handleOut{&outbox{run: (*Run)(b), name: name, missing: true}}
}

// handleOut is an Out port behind a handle, which has encoded what it writes, does not keep it, and names the port in errors.
type handleOut struct{ *outbox }

// Write implements port.Writer.
func (out handleOut) Write(raw json.RawMessage) error {
	return out.write(store.Write{}, raw, 1)
}

// At implements port.VersionedWriter.
func (out handleOut) At(version int) port.Writer { return versionOut{out, version} }

// versionOut is an Out port whose messages are of a version.
type versionOut struct {
	handleOut
	version int
}

// Write implements port.Writer.
func (out versionOut) Write(raw json.RawMessage) error {
	return out.write(store.Write{}, raw, out.version)
}

// WriteKey implements port.Writer.
func (out versionOut) WriteKey(key string, raw json.RawMessage) error {
	return out.write(store.Write{Keyed: true, Key: job.Hash(key)}, raw, out.version)
}

// WriteKey implements port.Writer.
func (out handleOut) WriteKey(key string, raw json.RawMessage) error {
	return out.write(store.Write{Keyed: true, Key: job.Hash(key)}, raw, 1)
}

// inbox reads a port: an In port of the run's job, or a port of one of its children.
// What it reads is removed from the port when the run commits.
type inbox struct {
	run      *Run
	job      job.ID // empty: the run's own
	dir      port.Dir
	name     string
	head     int64             // messages that were removed before those of this commit
	taken    int               // messages read since the last commit
	left     int               // messages of the snapshot not yet read
	hidden   int               // messages of the snapshot that are not for this run
	items    []json.RawMessage // the first of them
	sent     int               // how many came with the snapshot
	paged    bool              // more were asked for
	fallback json.RawMessage   // the port's default
	context  json.RawMessage   // of the message read last, nil for none
	last     json.RawMessage   // the message read last
	closed   bool
	opened   bool // the worker has it in its hands
	fed      bool // wired to other jobs
	more     bool // of a child's port: there may be messages behind those left
	asked    bool // of a child's port: fallback is known
	cut      bool // the worker was told to leave the rest to the next run
	format   port.Format
}

// receive gives the port what came with the snapshot; if the run is to have a single message, only that.
func (in *inbox) receive(box store.Inbox, single bool) {
	in.head, in.left, in.items, in.sent = box.Head, box.Len, box.Items, len(box.Items)
	if single && in.left > 1 {
		in.hidden, in.left, in.items = in.left-1, 1, in.items[:min(1, len(in.items))]
	}
}

func (in *inbox) called() string { return in.name }

// Read implements port.Reader.
func (in *inbox) Read() (json.RawMessage, bool, error) { return in.next(true) }

// Peek implements port.Reader.
func (in *inbox) Peek() (json.RawMessage, bool, error) { return in.next(false) }

func (in *inbox) next(remove bool) (json.RawMessage, bool, error) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	if in.run.over {
		return nil, false, errOver
	}
	if len(in.items) == 0 && (in.left > 0 || in.more) {
		if err := in.page(); err != nil {
			return nil, false, fmt.Errorf("reading port %q of job %s: %w", in.name, in.owner(), err)
		}
	}
	if in.left == 0 {
		if err := in.askDefault(); err != nil {
			return nil, false, fmt.Errorf("reading the default of port %q of job %s: %w", in.name, in.owner(), err)
		}
		if remove {
			in.context = nil
		}
		return in.fallback, in.fallback != nil, nil
	}
	data, context := port.Split(in.items[0])
	opened, err := in.open(data, context)
	if err != nil {
		return nil, false, err
	}
	if remove {
		in.run.journal.read(in, data)
		if in.run.trace.links {
			in.run.trace.link(context)
		}
		in.context, in.last = context, data
		in.items = in.items[1:]
		in.left--
		in.taken++
		in.run.latest = append(in.run.latest[:0], in)
	}
	return opened, true, nil
}

// Reads implements port.VersionedReader.
func (in *inbox) Reads(f port.Format) { in.format = f }

// open returns a message as the handle of the port reads it. A run that cannot leaves its job to engines that can.
func (in *inbox) open(data, context json.RawMessage) (json.RawMessage, error) {
	if in.format.Version == 0 {
		if in.run.passing = port.ContextVersionOf(context); in.run.passing > 1 {
			in.run.passed = data
		}
		return data, nil
	}
	opened, err := in.format.Open(data, context)
	if err != nil {
		err = fmt.Errorf("reading port %q: %w", in.name, err)
		if in.run.broken == nil {
			in.run.broken = &undecodable{error: err, message: true}
		}
	}
	return opened, err
}

// message takes the next message; when there is none, it returns the default, and false.
func (in *inbox) message() (json.RawMessage, bool, error) {
	before := in.taken
	raw, _, err := in.next(true)
	return raw, in.taken > before, err
}

// askDefault finds out the default of a child's port, which is no part of the snapshot.
func (in *inbox) askDefault() error {
	if in.job == "" || in.asked {
		return nil
	}
	return in.run.ask(func(ctx context.Context) error {
		info, err := in.run.store.Info(ctx, in.job)
		if err != nil {
			return err
		}
		p, there := info.Port(in.dir, in.name)
		if !there {
			p, _ = info.Port(in.dir, port.Any)
		}
		in.fallback, in.asked = p.Default, true
		return nil
	})
}

// rewind gives back all that was read; it is fetched again when it is wanted.
func (in *inbox) rewind() {
	if in.taken == 0 {
		return
	}
	if in.more {
		in.left = 0
	} else {
		in.left += in.taken
	}
	in.taken, in.items = 0, nil
}

// page fetches more of the snapshot, or of a child's port. The messages lie behind those taken, which stay in
// the port until the commit; if somebody outside removed any, the run must repeat.
func (in *inbox) page() error {
	r := in.run
	if r.broken != nil {
		return r.broken
	}
	most := batchMessages
	if !in.more {
		most = min(in.left, most)
	}
	in.paged = true
	items, head, err := r.page(in.owner(), in.dir, in.name, in.taken, most)
	if err != nil {
		return err
	}
	if head != in.head || len(items) == 0 && !in.more {
		r.broken = job.ErrMoved
		return r.broken
	}
	in.items = items
	if in.more {
		in.left, in.more = len(items), full(items)
	}
	return nil
}

// page reads n messages of a port from offset on, or as many as a page may hold.
func (r *Run) page(id job.ID, dir port.Dir, name string, offset, n int) (items []json.RawMessage, head int64, err error) {
	err = r.ask(func(ctx context.Context) error {
		items, head, err = r.store.Page(ctx, id, dir, name, offset, n, batchBytes)
		return err
	})
	return items, head, err
}

// full tells whether a page holds as much as a page may.
func full(items []json.RawMessage) bool {
	size := 0
	for _, raw := range items {
		size += len(raw)
	}
	return len(items) == batchMessages || size >= batchBytes
}

func (in *inbox) owner() job.ID {
	if in.job != "" {
		return in.job
	}
	return in.run.info.ID
}

// Len implements port.Reader.
func (in *inbox) Len() int {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	return in.left
}

// Full tells whether the run has written so much that the rest should be left to the next one: at most half of what
// a commit may hold, so that there is room for what the messages read last lead to.
func (in *inbox) Full() bool {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	in.cut = job.Values(in.run.reached, in.run.size) >= MaxWrites/2 || in.run.size >= MaxCommit/2
	return in.cut
}

// Done implements port.Reader.
func (in *inbox) Done() bool {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	return in.done()
}

func (in *inbox) done() bool { return in.closed && in.left == 0 && in.hidden == 0 }

// outbox buffers what the worker writes to an Out port.
type outbox struct {
	run     *Run
	name    string
	closed  bool
	wired   bool
	edges   int
	written int64 // the step behind the last one of the run in which it was written to
	before  bool  // it was closed when the run began
	missing bool  // the worker has it; its job, created by an older program, has not
}

func (out *outbox) called() string { return out.name }

// Write implements port.Writer.
func (out *outbox) Write(raw json.RawMessage) error {
	err := port.Check(raw)
	if err == nil {
		err = handleOut{out}.Write(slices.Clone(raw))
	}
	return out.wrap(err)
}

// WriteKey implements port.Writer.
func (out *outbox) WriteKey(key string, raw json.RawMessage) error {
	err := port.Check(raw)
	if err == nil {
		err = handleOut{out}.WriteKey(key, slices.Clone(raw))
	}
	return out.wrap(err)
}

func (out *outbox) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("writing to port %q of job %s: %w", out.name, out.run.info.ID, err)
	}
	return nil
}

func (out *outbox) write(w store.Write, item json.RawMessage, version int) error {
	out.run.mu.Lock()
	defer out.run.mu.Unlock()
	switch {
	case out.closed:
		why := ""
		if out.wired && out.before {
			why = ": if an earlier run returned nil when no input could bring more, that completed the job; let it return worker.ErrSuspend while a timer or a child is to go on"
		}
		return fmt.Errorf("the %w is closed%s", job.ErrPort, why)
	case out.missing: // another try of this engine would only repeat what the run did before
		return Permanent(fmt.Errorf("job %s was created without this %w, by another version of its type: patch its graph (Handle.Patch) or, if it is in none, "+
			"give it the port (Handle.SetPorts), and retry it; or retry it while only engines of that version live", out.run.info.ID, job.ErrPort))
	}
	w.Dir, w.Port = port.Output, out.name
	if out.run.defaulting {
		return out.run.setDefault(store.Default{Dir: port.Output, Port: out.name, Value: item})
	}
	out.run.reached += max(out.edges-1, 0) / 4 // as job.MaxWrites counts
	if out.written <= out.run.step {
		out.written = out.run.step + 1
		out.run.reached += job.PortWrites * max(out.edges, 1)
	}
	return out.run.write(w, item, version)
}

// write buffers a message for a port, which the caller gives away, and names in errors. One that was read as it is stored keeps its version. r.mu is held.
func (r *Run) write(w store.Write, item json.RawMessage, version int) error {
	if err := r.add(len(item)); err != nil {
		return err
	}
	head, err := r.sealed()
	if err != nil {
		return err
	}
	r.reached++
	r.size += len(head)
	w.Unlogged = r.journal.silent()
	r.journal.write(w, item, r.extra)
	if version == 1 && r.passing > 1 && bytes.Equal(item, r.passed) {
		version = r.passing
	}
	item = slices.Concat(head, item)
	if version > 1 {
		item = port.SealVersion(item, version)
	}
	// Neighbours that go the same way share one entry.
	if n := len(r.delta.Writes); n > 0 {
		last := &r.delta.Writes[n-1]
		if last.Job == w.Job && last.Dir == w.Dir && last.Port == w.Port && last.Keyed == w.Keyed && last.Key == w.Key && last.Unlogged == w.Unlogged {
			last.Items = append(last.Items, item)
			return nil
		}
	}
	w.Items = []json.RawMessage{item}
	r.delta.Writes = append(r.delta.Writes, w)
	return nil
}

// Close implements port.Writer.
func (out *outbox) Close() error {
	out.run.mu.Lock()
	defer out.run.mu.Unlock()
	if out.run.over {
		return errOver
	}
	out.close()
	return nil
}

func (out *outbox) close() {
	if !out.closed && !out.missing {
		out.closed = true
		out.run.delta.Closes = append(out.run.delta.Closes, out.name)
	}
}
