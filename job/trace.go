package job

import (
	"strings"

	"github.com/weirworks/weir/port"
)

// Trace is a place in a distributed trace, as W3C Trace Context says it: a span, to which what follows from it belongs. The zero
// value is none. Package telemetry/tracing makes spans of runs.
type Trace struct {
	// Parent is the header traceparent: version, ID of the trace, ID of the span, flags.
	Parent string
	// State is the header tracestate; often empty.
	State string
}

const (
	traceLength   = 55 // bytes of a traceparent: 00-<32>-<16>-<2>
	maxTraceState = 512
	spanAt        = 36 // where the ID of the span begins
)

// ParseTrace returns the place that the headers traceparent and tracestate tell; ok is false if that is none. A state that is not
// to be carried on is left out.
func ParseTrace(parent, state string) (t Trace, ok bool) {
	if len(parent) < traceLength || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || parent[:2] == "ff" {
		return Trace{}, false
	}
	// A later version may have more fields, and the same first ones.
	if len(parent) > traceLength && (parent[:2] == "00" || parent[traceLength] != '-') {
		return Trace{}, false
	}
	id, span := parent[3:35], parent[spanAt:52]
	if !hexadecimal(parent[:2]) || !hexadecimal(id) || !hexadecimal(span) || !hexadecimal(parent[53:traceLength]) ||
		strings.Trim(id, "0") == "" || strings.Trim(span, "0") == "" {
		return Trace{}, false
	}
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	if len(state) > maxTraceState || strings.ContainsFunc(state, foreign) {
		state = ""
	}
	return Trace{Parent: parent[:traceLength], State: state}, true
}

func hexadecimal(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Sampled tells whether spans of the trace are recorded.
func (t Trace) Sampled() bool {
	if len(t.Parent) != traceLength {
		return false
	}
	return strings.IndexByte("13579bdf", t.Parent[traceLength-1]) >= 0
}

// TraceID is the ID of the trace: 32 hexadecimal digits; empty for none.
func (t Trace) TraceID() string {
	if len(t.Parent) != traceLength {
		return ""
	}
	return t.Parent[3:35]
}

// String is what a store keeps of it: both headers, with a space between them.
func (t Trace) String() string {
	if t.State == "" {
		return t.Parent
	}
	return t.Parent + " " + t.State
}

// StoredTrace returns what String told.
func StoredTrace(s string) Trace {
	if s == "" {
		return Trace{}
	}
	t, _ := ParseTrace(first(strings.Cut(s, " ")))
	return t
}

func first(a, b string, _ bool) (string, string) { return a, b }

// Carry returns a context with the keys of the trace, for messages that belong to it.
func (t Trace) Carry(c port.Context) port.Context {
	if t.Parent == "" {
		return c
	}
	keys := port.Context{port.ContextTrace: t.Parent}
	if t.State != "" {
		keys[port.ContextTraceState] = t.State
	}
	return keys.With(c)
}

// Traced returns a plan whose jobs belong to a trace. The plan given is not changed: its planner may give it to others.
func (p *Plan) Traced(t Trace) *Plan {
	if t.Parent == "" || p.Trace == t {
		return p
	}
	changed := *p
	changed.Trace = t
	return &changed
}
