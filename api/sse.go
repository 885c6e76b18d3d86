package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// What is looked for again and again is so at this interval, or less often when much is, and a stream without events is
// kept alive so often.
const (
	eventsEvery = 250 * time.Millisecond
	aliveEvery  = 15 * time.Second
	// streamCost is the time between two looks that each open stream adds, when there are many: each of them may be sent something.
	streamCost = 2 * time.Millisecond
)

// sse is a stream of server-sent events.
type sse struct {
	session *session
	w       http.ResponseWriter
	control *http.ResponseController
	sent    time.Time // when something was sent last
	seen    time.Time // when the token was last seen to be valid
}

// streaming answers with a stream of events that fn sends, until its context ends: the client is gone, or the server ends.
func (s *session) streaming(fn func(ctx context.Context, out *sse)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := unwrap(hc)
		ctx, cancel := s.until(hc.Context())
		defer cancel()
		if ends := s.principal.until; !ends.IsZero() {
			ctx, cancel = context.WithDeadline(ctx, ends)
			defer cancel()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		s.feeds.streams.Add(1)
		defer s.feeds.streams.Add(-1)
		out := &sse{session: s, w: w, control: http.NewResponseController(w), sent: time.Now(), seen: time.Now()}
		if out.control.Flush() == nil { // there may be no event for long
			fn(ctx, out)
		}
	}}
}

// write sends events, and an idle stream a sign of life; that may name a place where who comes back goes on.
func (o *sse) write(ctx context.Context, events []byte, place string) error {
	if len(events) == 0 {
		if time.Since(o.sent) < aliveEvery-eventsEvery {
			return nil
		}
		if events = []byte(": alive\n\n"); place != "" {
			events = []byte("id: " + place + "\n\n")
		}
	}
	o.sent = time.Now()
	if o.sent.Sub(o.seen) > tokenKept {
		if err := o.session.still(ctx); err != nil {
			return err
		}
		o.seen = o.sent
	}
	if err := o.control.SetWriteDeadline(o.sent.Add(2 * aliveEvery)); err != nil {
		return err
	}
	if _, err := o.w.Write(events); err != nil {
		return err
	}
	return o.control.Flush()
}

// putEvent adds an event to b. Who comes back behind one without place goes on behind the last that had one.
func putEvent(b *bytes.Buffer, place, kind string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if place != "" {
		fmt.Fprintf(b, "id: %s\n", place)
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", kind, raw)
	return nil
}
