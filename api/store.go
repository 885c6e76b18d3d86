package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// callDeadline is for how long an answer may be on its way to a client that reads it.
const callDeadline = 2 * aliveEvery

// storeOperations are what Weir's own Go client and commands call, see package httpstore.
func (s *Server) storeOperations() {
	var names []string
	for _, c := range storecall.All() {
		names = append(names, c.Name)
		s.mux.HandleFunc(http.MethodPost+" "+storecall.Path+c.Name, s.storeCall(c))
	}
	s.mux.HandleFunc(http.MethodPost+" "+storecall.Path+"{call}", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, problem(Kind{"no_route", http.StatusNotFound, 2}, "there is no call %.80q: %s; is the client of another version than the server?", r.PathValue("call"), port.Suggest(r.PathValue("call"), names)))
	})
	s.api.OpenAPI().AddOperation(&huma.Operation{
		Method: http.MethodPost, Path: storecall.Path + "{call}", OperationID: "call-store", Tags: []string{groupSystem}, Summary: "What Weir's Go client and commands call",
		Description: "For the Go package httpstore and for `weir --server`, of the same version as the server. Other programs use the operations above, which stay as they are. Bodies are CBOR; each call asks for a role of its own.",
		Parameters:  []*huma.Param{{Name: "call", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
		Security:    []map[string][]string{{"token": {}}}, Extensions: map[string]any{"x-role": read},
		Responses: map[string]*huma.Response{"200": {Description: "what the call answers", Content: map[string]*huma.MediaType{storecall.ContentType: {}}}},
	})
}

// storeCall serves one of them.
func (s *Server) storeCall(c storecall.Call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		op := operation{method: http.MethodPost, path: r.URL.Path, id: "store-" + c.Name, role: c.Role, unaudited: c.Looks, on: new(string)}
		s.admit(w, r, op, func(session *session) {
			request, err := io.ReadAll(r.Body) // it was read as a whole before
			if err == nil && mediaType(r) != storecall.ContentType {
				writeProblem(w, problem(Kind{"malformed", http.StatusUnsupportedMediaType, 2}, "send %s", storecall.ContentType))
				return
			}
			if !c.Looks {
				*op.on = c.Subject(request)
			}
			ctx := r.Context()
			if c.Streams {
				var cancel func()
				ctx, cancel = session.until(ctx)
				defer cancel()
			}
			if by, _ := url.QueryUnescape(r.Header.Get(storecall.ActorHeader)); by != "" {
				if s.cfg.Tokens {
					by = session.principal.Name
				}
				ctx = job.WithContext(ctx, port.Context{port.ContextBy: by})
			}
			a := &storeAnswer{w: w, control: http.NewResponseController(w), streams: c.Streams, live: c.Live}
			if err == nil {
				var by storecall.By
				if s.cfg.Tokens {
					by = storecall.By(session.principal.Name)
				}
				err = c.Serve(ctx, session.store, by, request, a.send)
			}
			a.end(err)
		})
	}
}

// storeAnswer is the answer to a call.
type storeAnswer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	streams bool
	live    bool // its answers are waited for one by one
	begun   bool
}

// errGone says that nobody reads the answer any more.
var errGone = errors.New("the client is gone")

// send sends the answer, or one of a stream.
func (a *storeAnswer) send(raw []byte) error {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", storecall.ContentType)
		a.w.WriteHeader(http.StatusOK)
	}
	if a.streams {
		item, err := storecall.Encode(storecall.Item{Value: raw})
		if err != nil {
			return err
		}
		raw = item
	}
	if err := a.control.SetWriteDeadline(time.Now().Add(callDeadline)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if _, err := io.Copy(a.w, bytes.NewReader(raw)); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if a.live && a.control.Flush() != nil {
		return errGone
	}
	return nil
}

// end sends what went wrong, or that a stream is over.
func (a *storeAnswer) end(err error) {
	switch {
	case errors.Is(err, errGone):
	case err != nil && !a.begun:
		p := problemOf(err)
		p.Refusal = storecall.RefusalOf(err)
		writeProblem(a.w, p)
	case a.streams:
		a.begun = true
		item, failed := storecall.Encode(storecall.Item{Refusal: storecall.RefusalOf(err), End: err == nil})
		if failed == nil {
			_, _ = a.w.Write(item) //nolint:gosec // CBOR is no markup
		}
	}
}
