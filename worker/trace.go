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
// was created in. A run of a job that has neither begins one. It is for hooks, before the run's code.
func (r *Run) Upstream() job.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.boxes {
		if len(in.items) == 0 {
			continue
		}
		_, context := port.Split(in.items[0])
		if t, ok := job.ParseTrace(port.TraceOf(context)); ok {
			return t
		}
	}
	return r.info.Trace
}

// SetTrace gives the run its place in a trace: what it writes and spawns, and how it fails, carries that. With links the
// traces of the messages that it reads are kept, for ReadTraces. It is for hooks, before the run's code.
func (r *Run) SetTrace(t job.Trace, links bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace = tracing{at: t, links: links}
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
