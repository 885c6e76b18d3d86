package job

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/port"
)

// FailurePolicy says what follows when a job of a graph has failed and has no tries left.
type FailurePolicy string

// The failure policies.
const (
	// FailGraph fails the graph. It is the default, also written "".
	FailGraph FailurePolicy = "fail"
	// Ignore lets the graph go on: what the failed job fed gets no more messages, and nobody waits
	// for room in its ports.
	Ignore FailurePolicy = "ignore"
	// Restart tries again indefinitely, with growing delays.
	Restart FailurePolicy = "restart"
	// DeadLetter moves the message that the job cannot handle to its port ErrorsPort.
	DeadLetter FailurePolicy = "dead_letter"
)

// Policies are all failure policies.
var Policies = []FailurePolicy{FailGraph, Ignore, Restart, DeadLetter}

// Validate refuses what is no failure policy.
func (p FailurePolicy) Validate() error {
	switch p {
	case "", FailGraph, Ignore, Restart, DeadLetter:
		return nil
	}
	return fmt.Errorf("failure policy %.40q: use one of %q", string(p), Policies)
}

// ErrorsPort is the Out port for what a job with the policy DeadLetter cannot handle.
const ErrorsPort = "errors"

// rejectedPort is the Out port of the ready worker types for what they cannot use.
const rejectedPort = "err"

// ForErrors tells whether a port is one for errors alone, which most graphs do not use: trees and pictures leave it out as long as
// nothing comes there.
func ForErrors(p *port.Spec) bool {
	return p.Dir == port.Output && (p.Name == ErrorsPort || p.Name == rejectedPort) && len(p.Channels) == 0
}

// Letter is a dead letter: a message that a job could not handle, in an envelope that says why. client.Client.DeadLetters finds
// those that wait, and client.Client.Requeue takes the envelope off.
type Letter struct {
	// Job is the one that could not handle the messages; empty in dead letters of older versions.
	Job ID `json:"job,omitempty"`
	// Step is the number of the job's run that failed last.
	Step int64 `json:"step,omitempty"`
	// Error is why, in one line.
	Error string `json:"error"`
	// At is when the last try failed.
	At time.Time `json:"at"`
	// Messages are those that the failed run had read, by In port.
	Messages map[string]json.RawMessage `json:"messages"`
	// Contexts are those of the messages, by In port: JSON objects. One that had none is not in it.
	Contexts map[string]json.RawMessage `json:"contexts,omitempty"`
}

// String returns the dead letter as JSON, as it lies in the port: what is printed shows messages as texts and not as bytes.
func (l Letter) String() string { return port.Text(l) }
