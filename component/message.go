package component

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of the parameter on_error: what becomes of a message that cannot be worked on.
const (
	OnErrorFail = "fail" // the job fails and the message stays unread; the default
	OnErrorSkip = "skip" // the message is left out
	OnErrorPort = "err"  // the message goes to the Out port err, as a Rejected
)

// Rejected is a message that could not be worked on, and why.
type Rejected struct {
	Error string          `json:"error"`
	Data  json.RawMessage `json:"data"` // null if it is too large to go along
}

// messageError is the fault of one message, not of the run.
type messageError struct{ error }

// Unwrap gives the error itself.
func (e messageError) Unwrap() error { return e.error }

// fault marks an error as that of the message.
func fault(err error) error {
	if err == nil {
		return nil
	}
	return messageError{err}
}

// reject deals with the error of a message as on_error says. Other errors are returned.
func reject(ctx context.Context, mode string, errs port.Out[Rejected], data json.RawMessage, err error) error {
	var e messageError
	if !errors.As(err, &e) || ctx.Err() != nil {
		return err
	}
	switch mode {
	case OnErrorSkip:
		return nil
	case OnErrorPort:
		text := clip(e.Error(), 4096)
		if len(data)+2*len(text)+64 > worker.MaxMessage {
			data = nil
		}
		return errs.Write(Rejected{Error: text, Data: data})
	}
	return e.error
}

// clip cuts a text between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// What a run takes from its In ports and writes. The rest is for the next run, so that
// other jobs get their turn and full ports stop their producers.
const (
	quotaMessages = 1000
	quotaBytes    = 2 << 20
)

// quota counts what a run reads and writes.
type quota struct{ messages, bytes int }

func (q *quota) spent() bool { return q.messages >= quotaMessages || q.bytes >= quotaBytes }

func (q *quota) add(raw json.RawMessage) {
	q.messages++
	q.bytes += len(raw)
}

// take reads the next message of a port that has one.
func (q *quota) take(in port.Reader) (json.RawMessage, error) {
	raw, _, err := in.Read()
	q.add(raw)
	return raw, err
}

// drain gives the messages of a port to fn until the port is empty or the quota spent.
func (q *quota) drain(ctx context.Context, in port.Reader, fn func(json.RawMessage) error) error {
	for in.Len() > 0 && !q.spent() {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := q.take(in)
		if err == nil {
			err = fn(raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSize refuses what cannot be a message, as a fault of the message it was made of.
func checkSize(raw json.RawMessage) error {
	if len(raw) > worker.MaxMessage {
		return fault(fmt.Errorf("the result has %d bytes, a message at most %d", len(raw), worker.MaxMessage))
	}
	return nil
}

// array joins messages to a JSON array.
func array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, raw := range items {
		size += len(raw) + 1
	}
	out := append(make([]byte, 0, size), '[')
	out = append(out, bytes.Join(rawBytes(items), []byte{','})...)
	return append(out, ']')
}

func rawBytes(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i, raw := range items {
		out[i] = raw
	}
	return out
}

// pace makes checkpoints in long loops.
type pace struct {
	run  *worker.Run
	save func() error // puts into the state how far the loop is
	q    quota
}

// wrote counts a message and makes a checkpoint when it is time for one.
func (p *pace) wrote(bytes int) error {
	p.q.messages++
	p.q.bytes += bytes
	if !p.q.spent() {
		return nil
	}
	p.q = quota{}
	if err := p.save(); err != nil {
		return err
	}
	return p.run.Checkpoint()
}

// outs finds the Out ports of a job by name, once each.
type outs struct {
	run  *worker.Run
	open map[string]port.Writer
}

func (o *outs) write(name string, raw json.RawMessage) error {
	w := o.open[name]
	if w == nil {
		var err error
		if w, err = o.run.Out(name); err != nil {
			return err
		}
		if o.open == nil {
			o.open = map[string]port.Writer{}
		}
		o.open[name] = w
	}
	return w.Write(raw)
}

// insOf returns the In ports of those names.
func insOf(run *worker.Run, names []string) ([]port.Reader, error) {
	list := make([]port.Reader, len(names))
	for i, name := range names {
		in, err := run.In(name)
		if err != nil {
			return nil, err
		}
		list[i] = in
	}
	return list, nil
}

// waiting counts the messages of ports, and tells whether all are at their end.
func waiting(ins []port.Reader) (n int, done bool) {
	done = true
	for _, in := range ins {
		n += in.Len()
		done = done && in.Done()
	}
	return n, done
}
