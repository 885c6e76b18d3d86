package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// IdempotencyKey returns a key for an external side effect, such as a payment: hand it to a
// service that recognizes repeats by it.
//
// The key covers the message that the run read last. It is the same each time that message is
// worked on, whichever run does so and whatever else that run reads, and another one for the
// next message. If several messages were read before the call, only the last counts: a worker
// that reads several and then acts on each asks for the key right after it reads a message, or
// puts something of the message into name. In Zip the messages of the row count, all of
// them. A child's Out port counts like an In port of the job; Peek, and the default of a port,
// count for nothing.
//
// If the run has read no message since it began, or since its last Checkpoint, the key covers
// the step: it is the same however often the step is repeated, and another one after it has been
// committed.
//
// A message that goes around a cycle is another one each time, with another key: name an effect that must happen once for
// all turns by something in the message, without this key.
//
// Several effects of one message, or of one step, need a name each.
func (r *Run) IdempotencyKey(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := []string{string(r.info.ID)}
	if len(r.latest) == 0 {
		parts = append(parts, strconv.FormatInt(r.step, 10))
	}
	for _, in := range r.latest {
		at := in.head + int64(in.taken) - 1
		parts = append(parts, string(in.owner()), in.dir.String(), in.name, strconv.FormatInt(at, 10))
	}
	h := sha256.New()
	for _, part := range append(parts, name) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// lastRead makes messages of several ports those that were read last.
func (r *Run) lastRead(from []*inbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = from
}
