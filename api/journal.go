package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

const (
	systemTime  = 6 * time.Second // for which a server reserves its system ID
	systemRenew = 2 * time.Second
	retryAfter  = time.Second // when a client whose payloads were refused may send them again
)

// payloadOperations are those of payloads in bulk.
func (s *Server) payloadOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/{client}/job/{type}/add", id: "add-payloads", group: groupPayloads, role: operate, raw: true, unaudited: true, summary: "Create a job of each payload of many",
		about: "Each line of the body is a payload, and becomes a job of the type: the message for its In port in. Lines end with \\n or \\r\\n, the last one with nothing, too; empty lines and those that begin with # are none. " +
			"The answer has the IDs of the jobs, in the order of the lines. With tokens the client is their namespace; without, the type is {client}-{type}. " +
			"With a journal the answer comes when the payloads are on the disk of the server, and the jobs are there soon after: 429 or 503 with Retry-After if it has no room now.",
	}, addPayloads)
	add(s, operation{
		method: http.MethodGet, path: "/v1/journal", id: "show-journal", group: groupPayloads, role: read, summary: "Show what is in the journal of this server",
		about: "Of a server without a journal `enabled` is false.",
	}, showJournal)
}

// AddedPayloads is what payloads became.
type AddedPayloads struct {
	IDs   []job.ID `json:"ids" doc:"of the jobs, in the order of the payloads"`
	Count int      `json:"count"`
}

type payloadsInput struct {
	Client  string `path:"client" doc:"with tokens the namespace; without any name of letters, digits, _ and ., which is a tenant of its own"`
	Type    string `path:"type" doc:"the worker type of the jobs; without tokens it is stored as {client}-{type}"`
	RawBody []byte `contentType:"text/plain"`
}

func addPayloads(ctx context.Context, s *session, in *payloadsInput) (*reply[AddedPayloads], error) {
	typ, err := ClientType(s.cfg.Tokens, s.store.Namespace(), in.Client, in.Type)
	if err != nil {
		return nil, err
	}
	// Here and not in the journal: what lies there was acknowledged with an ID for each of its lines, as they were counted then.
	body := bytes.ReplaceAll(in.RawBody, []byte("\r\n"), []byte("\n"))
	if err := checkPayloads(body); err != nil {
		return nil, err
	}
	if s.cfg.Journal == "" {
		ids, err := s.startPayloads(ctx, typ, body)
		return answer(AddedPayloads{ids, len(ids)}, err)
	}
	kept, err := s.journals.of(s.store.Namespace())
	if err != nil {
		return nil, journalProblem(err)
	}
	return answer(acceptPayloads(ctx, kept.Journal, typ, body))
}

// acceptPayloads writes payloads to a journal.
func acceptPayloads(ctx context.Context, j *journal.Journal, typ string, body []byte) (AddedPayloads, error) {
	receipt, err := j.Write(typ, body)
	if err == nil {
		err = receipt.Wait(ctx)
	}
	if err != nil {
		return AddedPayloads{}, journalProblem(err)
	}
	return AddedPayloads{receipt.IDs(), receipt.Len()}, nil
}

// checkPayloads refuses payloads that cannot become messages.
func checkPayloads(body []byte) error {
	if n := journal.Count(body); n > journal.MaxLines {
		return problem(Kind{"too_large", http.StatusRequestEntityTooLarge, 1}, "the body has %d payloads: send at most %d at a time", n, journal.MaxLines)
	}
	valid := utf8.Valid(body)
	if valid && len(body) <= maxPayload {
		return nil
	}
	for n, line := range bytes.Split(body, []byte("\n")) {
		if !utf8.Valid(line) {
			return wrong("line %d of the body is not valid UTF-8: encode what is binary, as base64 for instance", n+1)
		}
		if len(line) <= maxPayload {
			continue
		}
		if message, err := journal.Message(line, ""); err != nil || len(message) > job.MaxMessage-messageRoom {
			return problem(Kind{"too_large", http.StatusRequestEntityTooLarge, 1}, "line %d of the body has %d bytes: as a message, a JSON string, it may have %d", n+1, len(line), job.MaxMessage-messageRoom)
		}
	}
	return nil
}

const (
	maxPayload  = job.MaxMessage / 7 // bytes of a payload that is never too large for a message, whatever is in it
	messageRoom = 1 << 10            // for the context of a message
)

// startPayloads creates jobs of payloads at once.
func (s *session) startPayloads(ctx context.Context, typ string, body []byte) (ids []job.ID, err error) {
	plans := journal.Plans{Types: s.store, Ports: payloadPorts}
	var all []client.Starting
	for payload := range journal.Payloads(body) {
		plan, err := plans.Plan(ctx, typ, payload)
		if err != nil {
			return nil, err
		}
		all = append(all, client.Starting{Plan: plan, Options: []job.Option{job.By(s.principal.Name), job.EnginesLater()}})
	}
	ids = []job.ID{}
	if len(all) == 0 {
		return ids, nil
	}
	if err := s.expected.add(ctx, s.store, typ); err != nil {
		return nil, err
	}
	started, err := s.client.StartMany(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, one := range started {
		ids = append(ids, one.Handle.ID())
	}
	return ids, nil
}

// journalProblem is the answer when a journal does not take payloads.
func journalProblem(err error) error {
	var p *Problem
	switch {
	case errors.Is(err, journal.ErrFull):
		p = problem(Kind{"full", http.StatusTooManyRequests, 6}, "%v; send it again later", err)
	case errors.Is(err, journal.ErrBusy), errors.Is(err, journal.ErrDisk), errors.Is(err, journal.ErrClosed), errors.Is(err, journal.ErrInUse):
		p = problem(Kind{"unavailable", http.StatusServiceUnavailable, 1}, "%v; nothing was accepted, send it again later", err)
	default:
		return err
	}
	p.retry = retryAfter
	return p
}

// JournalState is what is in the journal of a server, for one namespace.
type JournalState struct {
	Enabled bool `json:"enabled"`
	journal.Stats
	Moved   int64  `json:"moved" doc:"payloads that became jobs since the server was started"`
	Problem string `json:"problem,omitempty" doc:"why payloads are not moved at the moment"`
	System  string `json:"system,omitempty" doc:"the system ID of the server, which no other one has"`
	Held    bool   `json:"held" doc:"the server has its system ID; without it moves nothing"`
}

func showJournal(_ context.Context, s *session, _ *struct{}) (*reply[JournalState], error) {
	if s.cfg.Journal == "" {
		return answer(JournalState{}, nil)
	}
	kept, err := s.journals.of(s.store.Namespace())
	if err != nil {
		return nil, journalProblem(err)
	}
	state := JournalState{Enabled: true, Stats: kept.Stats(), Moved: kept.mover.Moved(), Problem: kept.mover.Problem(), System: kept.id, Held: kept.held()}
	if lost := kept.lost.Load(); lost != nil && !state.Held {
		state.Problem = *lost
	}
	return answer(state, nil)
}

// journals are those of a server: one for each namespace, in a directory with its name.
type journals struct {
	server *Server
	mu     sync.Mutex
	open   map[string]*keptJournal
	closed bool
}

// keptJournal is an open one, whose payloads are moved.
type keptJournal struct {
	*journal.Journal
	mover  *journal.Mover
	id     string                            // system ID
	system atomic.Pointer[redisstore.System] // nil while the ID is not reserved
	lost   atomic.Pointer[string]            // why it is not; nil if nothing was wrong
	cancel context.CancelFunc
	moving sync.WaitGroup
}

// start opens the journals that are there, and that of the namespace that is served.
func (js *journals) start(s *Server) error {
	js.server, js.open = s, map[string]*keptJournal{}
	if s.cfg.Journal == "" {
		return nil
	}
	entries, err := os.ReadDir(s.cfg.Journal)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w of the API: Journal: %w", job.ErrConfig, err)
	}
	names := []string{s.cfg.Store.Namespace()}
	for _, e := range entries {
		if e.IsDir() && e.Name() != names[0] && s.cfg.Open != nil {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		k, err := js.of(name)
		if err == nil {
			err = k.belongs()
		}
		if err != nil {
			return errors.Join(err, js.close())
		}
	}
	return nil
}

// belongs refuses a journal with payloads of another Redis.
func (k *keptJournal) belongs() error {
	ctx, cancel := context.WithTimeout(context.Background(), systemTime)
	defer cancel()
	if err := k.mover.Check(ctx); err != nil {
		return fmt.Errorf("%w of the API: Journal: %w", job.ErrConfig, err)
	}
	return nil
}

// of returns the journal of a namespace.
func (js *journals) of(namespace string) (*keptJournal, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.closed {
		return nil, journal.ErrClosed
	}
	if k := js.open[namespace]; k != nil {
		return k, nil
	}
	cfg := &js.server.cfg
	log := cfg.Logger
	if !log.Enabled(context.Background(), slog.LevelError) {
		log = js.server.panics // what goes wrong is told though requests are not
	}
	j, err := journal.Open(journal.Config{Dir: filepath.Join(cfg.Journal, namespace), Limit: cfg.JournalLimit, Logger: log})
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // without a name the random part is what tells it apart
	k := &keptJournal{Journal: j, id: systemID(host)}
	k.mover = &journal.Mover{Journal: j, Store: tenantStore{js.server, namespace}, Held: k.held, Ports: payloadPorts, Logger: log}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.moving.Go(func() { _ = k.mover.Run(ctx) })
	k.moving.Go(func() { k.reserve(ctx, js.server, namespace) })
	js.open[namespace] = k
	return k, nil
}

// systemID is a name that no other server has, and that tells where it is.
func systemID(host string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return -1
	}, host)
	return "server-" + name[:min(len(name), 40)] + "-" + rand.Text()[:8]
}

// held tells whether the server has its system ID.
func (k *keptJournal) held() bool {
	system := k.system.Load()
	return system != nil && system.Held()
}

// reserve keeps the system ID until ctx ends.
func (k *keptJournal) reserve(ctx context.Context, s *Server, namespace string) {
	var system *redisstore.System
	for {
		wait := systemRenew
		var err error
		if system != nil {
			err = system.Renew(ctx) // held tells the mover, and the next time may do better
		} else if store, opened := s.tenants.store(ctx, namespace); opened != nil {
			err = opened
		} else if system, err = store.ReserveSystem(ctx, k.id, systemTime); err == nil {
			k.system.Store(system)
		}
		k.lost.Store(nil)
		if err != nil {
			k.lost.Store(new(err.Error()))
		}
		if system == nil {
			wait /= 10
		}
		select {
		case <-ctx.Done():
			if system != nil {
				late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				_ = system.Release(late) // it ends by itself
			}
			return
		case <-time.After(wait):
		}
	}
}

// close ends all journals.
func (js *journals) close() error {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.closed = true
	var errs []error
	for _, k := range js.open {
		k.cancel()
		k.moving.Wait()
		errs = append(errs, k.Close())
	}
	clear(js.open)
	return errors.Join(errs...)
}

// tenantStore is the store of a namespace, which is opened when it can be.
type tenantStore struct {
	server    *Server
	namespace string
}

// Types implements journal.Types.
func (t tenantStore) Types(ctx context.Context) ([]job.TypeInfo, error) {
	store, err := t.server.tenants.store(ctx, t.namespace)
	if err != nil {
		return nil, err
	}
	return store.Types(ctx)
}

// NamespaceID implements journal.Store.
func (t tenantStore) NamespaceID(ctx context.Context) (string, error) {
	store, err := t.server.tenants.store(ctx, t.namespace)
	if err != nil {
		return "", err
	}
	return store.NamespaceID(ctx)
}

// Where implements journal.Store.
func (t tenantStore) Where() string { return t.server.cfg.Store.Where() }

// CreateArrivals implements journal.Store.
func (t tenantStore) CreateArrivals(ctx context.Context, epoch string, all []store.Arrival) error {
	store, err := t.server.tenants.store(ctx, t.namespace)
	if err == nil {
		err = t.server.expected.addAll(ctx, store, all)
	}
	if err != nil {
		return err
	}
	return store.CreateArrivals(ctx, epoch, all)
}

// payloadPorts are the ports of jobs of types that nobody has registered yet: those of handlers.
var payloadPorts = []port.Spec{{Dir: port.Input, Name: journal.In}, {Dir: port.Output, Name: "out"}, {Dir: port.Output, Name: "err"}}
