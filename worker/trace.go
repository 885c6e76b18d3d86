package worker

import (
	"bytes"
	"encoding/json"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// MaxLinks is how many traces a run remembers of messages that it read.
const MaxLinks = 128

// tracing is what a run that is traced knows of it.
type tracing struct {
	at    job.Trace
	links bool              // contexts are kept:
	read  []json.RawMessage // of the messages that the run read: of several in succession that have the same, one
}

// link keeps the context of a message. r.mu is held.
func (t *tracing) link(context json.RawMessage) {
	if n := len(t.read); context == nil || n == MaxLinks || n > 0 && bytes.Equal(t.read[n-1], context) {
		return
	}
	t.read = append(t.read, context)
}

// Upstream returns the trace that the run goes on with: that of the first message that waits in an In port, else that which the job
// was created in. Without one, begins tells whether the run may begin a trace: not if a run of the same tree wrote that message, as
// whether its trace is recorded was decided where it began, and messages of one that is not carry nothing. It is for hooks,
// before the run's code.
func (r *Run) Upstream() (t job.Trace, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.boxes {
		if len(in.items) == 0 {
			continue
		}
		_, context := port.Split(in.items[0])
		if t, ok := job.ParseTrace(port.TraceOf(context)); ok {
			return t, false
		}
		if r.wrote(context) {
			return job.Trace{}, false
		}
		break
	}
	return r.info.Trace, r.info.Trace.Parent == ""
}

// wrote tells whether a run of the same tree wrote the message with a context.
func (r *Run) wrote(context json.RawMessage) bool {
	const key = `"` + port.ContextBy + `":"` + byJob
	_, by, ok := bytes.Cut(context, []byte(key)) // a quote within a string has a backslash before it
	tree := r.info.ID.Tree()
	return ok && len(by) > len(tree) && string(by[:len(tree)]) == string(tree)
}

// SetTrace gives the run its place in a trace. What it spawns and starts, and how it fails, carries that, and so do the messages
// that it writes if the trace is sampled. With links the traces of the messages that it reads are kept, for ReadTraces. It is
// for hooks, before the run's code.
func (r *Run) SetTrace(t job.Trace, links bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace = tracing{at: t, links: links}
	if !t.Sampled() {
		return
	}
	if r.head = nil; r.keys != nil { // a hook before this one uses WithContext
		_ = r.setContext(r.keys.With(t.Carry(nil))) // what it had was encoded once already
	}
}

// Trace returns the place of the run in a trace, zero if it is not traced: for requests to services that take the headers
// traceparent and tracestate.
func (r *Run) Trace() job.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trace.at
}

// ReadTraces returns the traces of the messages that the run has read so far, each once, at most MaxLinks: of a run whose SetTrace asked
// for them.
func (r *Run) ReadTraces() []job.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]job.Trace, 0, len(r.trace.read))
	known := make(map[string]bool, len(r.trace.read))
	for _, context := range r.trace.read {
		if t, ok := job.ParseTrace(port.TraceOf(context)); ok && !known[t.Parent] {
			known[t.Parent] = true
			all = append(all, t)
		}
	}
	return all
}
