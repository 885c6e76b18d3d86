package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// Role is what a principal may do.
type Role = redisstore.TokenRole

// Principal is who asks.
type Principal struct {
	Name   string
	Role   Role
	Tenant string    // the namespace; nothing in a request chooses another
	id     string    // of the token, or of whom it names
	signs  bool      // there is no token: the operation lets the request in, if it is signed
	until  time.Time // when the token expires; never if zero
}

// Identity is whom a token of another issuer names.
type Identity struct {
	Name    string // for logs; no other identity has it
	Role    Role
	Tenant  string    // the namespace
	Expires time.Time // of the token; never if zero
}

// session is what a request may work with.
type session struct {
	*Server
	store     *redisstore.Store
	client    *client.Client
	principal Principal
	auth      string // what the request said of who asks
}

// still returns an error if who asks may do so no more: his token has ended while he waited.
func (s *session) still(ctx context.Context) error {
	_, err := s.tenants.principal(ctx, s.auth)
	return err
}

type sessionKey struct{}

// find returns the job that a path names.
func (s *session) find(ctx context.Context, name string) (*client.Handle, error) {
	return s.client.Find(ctx, name)
}

// acting returns the context of what is written or locked: it says by whom.
func (s *session) acting(ctx context.Context) context.Context {
	return job.WithContext(ctx, port.Context{port.ContextBy: s.principal.Name})
}

// tokenKept is how long a token that was found is believed.
const tokenKept = 5 * time.Second

// tenants are the stores of the namespaces that are served, and the tokens that were seen lately.
type tenants struct {
	cfg    Config
	mu     *sync.Mutex
	stores map[string]*redisstore.Store
	seen   map[[sha256.Size]byte]seenToken // by the digest of the token
}

type seenToken struct {
	principal Principal
	until     time.Time
}

func newTenants(cfg Config) tenants {
	return tenants{cfg: cfg, mu: &sync.Mutex{}, stores: map[string]*redisstore.Store{}, seen: map[[sha256.Size]byte]seenToken{}}
}

// store returns that of a tenant.
func (t tenants) store(ctx context.Context, tenant string) (*redisstore.Store, error) {
	if tenant == t.cfg.Store.Namespace() {
		return t.cfg.Store, nil
	}
	if t.cfg.Open == nil {
		return nil, problem(Kind{"forbidden", http.StatusForbidden, 8}, "the token is for namespace %s, and this server serves namespace %s alone", tenant, t.cfg.Store.Namespace())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.stores[tenant]; s != nil {
		return s, nil
	}
	s, err := t.cfg.Open(ctx, tenant)
	if err == nil {
		t.stores[tenant] = s
	}
	return s, err
}

func (t tenants) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, s := range t.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// principal says who sends a request.
func (t tenants) principal(ctx context.Context, authorization string) (Principal, error) {
	if !t.cfg.Tokens {
		return Principal{Name: "local", Role: redisstore.TokenAdmin, Tenant: t.cfg.Store.Namespace()}, nil
	}
	kind, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(kind, "bearer") || token == "" {
		return Principal{}, unauthorized("send a token that weir token create made" + t.orIssued() + ", in the header Authorization: Bearer TOKEN")
	}
	now, digest := time.Now(), sha256.Sum256([]byte(token))
	t.mu.Lock()
	seen, ok := t.seen[digest]
	t.mu.Unlock()
	if ok && now.Before(seen.until) {
		return seen.principal, nil
	}
	who, err := t.verify(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	seen = seenToken{who, now.Add(tokenKept)}
	if !who.until.IsZero() && who.until.Before(seen.until) {
		seen.until = who.until
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.seen) >= 10_000 {
		clear(t.seen)
	}
	t.seen[digest] = seen
	return seen.principal, nil
}

// forget lets a token with an ID be looked up again.
func (t tenants) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.seen, func(_ [sha256.Size]byte, seen seenToken) bool { return seen.principal.id == id })
}

// orIssued adds to what is said of tokens that others are accepted, too.
func (t tenants) orIssued() string {
	if t.cfg.Verify == nil {
		return ""
	}
	return ", or one of the issuer that this server believes"
}

// verify says whom a token names: one of Weir's own, or of another issuer.
func (t tenants) verify(ctx context.Context, token string) (Principal, error) {
	if t.cfg.Verify == nil || redisstore.IsToken(token) {
		info, err := t.cfg.Store.Token(ctx, token)
		if errors.Is(err, job.ErrNotFound) {
			err = unauthorized("the token is not known, or no longer valid")
		}
		return Principal{Name: info.Name, Role: info.Role, Tenant: info.Tenant, id: info.ID, until: info.Expires}, err
	}
	who, err := t.cfg.Verify(ctx, token)
	if err != nil && !errors.Is(err, job.ErrUnavailable) && !errors.Is(err, job.ErrForbidden) {
		err = unauthorized(err.Error())
	}
	return Principal{Name: who.Name, Role: who.Role, Tenant: who.Tenant, id: "issued " + who.Name, until: who.Expires}, err
}

func unauthorized(text string) *Problem {
	return problem(Kind{"unauthorized", http.StatusUnauthorized, 8}, "%s", text)
}

// allowed tells whether a role may do what another one is asked for.
func allowed(has, needs Role) bool {
	switch needs {
	case redisstore.TokenRead:
		return true
	case redisstore.TokenOperate:
		return has == redisstore.TokenOperate || has == redisstore.TokenAdmin
	}
	return has == needs || has == redisstore.TokenAdmin
}

// guard lets only those in who may do what an operation does, gives it their store, and remembers who did what.
func (s *Server) guard(op operation) func(ctx huma.Context, next func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		r, w := unwrap(hc)
		s.admit(w, r, op, func(session *session) {
			if p := doubtful(hc, op); p != nil {
				writeProblem(w, p)
				return
			}
			next(huma.WithValue(hc, sessionKey{}, session))
		})
	}
}

// doubtful refuses a query that gives a parameter of one value twice, of which only the first would be read, and an empty number or
// truth value, in place of which the default would be taken. What is compatible with cozy takes what that takes.
func doubtful(hc huma.Context, op operation) *Problem {
	if op.group == groupCozy || hc.Operation() == nil {
		return nil
	}
	u := hc.URL()
	query := u.Query()
	for _, p := range hc.Operation().Parameters {
		values := query[p.Name]
		switch {
		case p.In != "query" || p.Schema == nil || p.Schema.Type == huma.TypeArray:
		case len(values) > 1:
			return wrong("query.%s is given %d times: give it once", p.Name, len(values))
		case len(values) == 1 && values[0] == "" && p.Schema.Type != huma.TypeString:
			return wrong("query.%s is empty: give it a value, or leave it out", p.Name)
		}
	}
	return nil
}

// admit calls fn if who asks may do what an operation does, or refuses it; and remembers who did what.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, op operation, fn func(*session)) {
	ctx := r.Context()
	who, err := s.tenants.principal(ctx, r.Header.Get("Authorization"))
	if op.signed && err != nil {
		if signer, ok := s.signer(r); ok {
			who, err = signer, nil
		}
	}
	known := err == nil
	if known {
		if wait := s.rates.take(who.id, time.Now()); wait > 0 {
			tooOften(w, wait, s.cfg.MaxRate) // not audited: that would cost more than the request
			return
		}
	}
	if known && !allowed(who.Role, op.role) {
		err = problem(Kind{"forbidden", http.StatusForbidden, 8}, "this needs a token of role %s: yours has role %s", op.role, who.Role)
	}
	var store *redisstore.Store
	if known {
		var other error
		if store, other = s.tenants.store(ctx, who.Tenant); err == nil {
			err = other
		}
	}
	if err != nil {
		writeProblem(w, problemOf(err))
	} else {
		fn(&session{Server: s, store: store, client: client.New(store), principal: who, auth: r.Header.Get("Authorization")})
	}
	rec, ok := w.(*recorder)
	if ok && who.signs && rec.status == http.StatusUnauthorized {
		return // else those without a token could fill the audit log
	}
	if ok && store != nil && (op.method != http.MethodGet && op.role != read && !op.unaudited || err != nil) {
		e := redisstore.AuditEntry{
			At: time.Now().UTC(), Principal: who.Name, Role: who.Role, Operation: op.id, Path: r.URL.Path, Status: rec.status, From: r.RemoteAddr,
		}
		if op.on != nil {
			e.On = *op.on
		}
		s.audit(ctx, store, e)
	}
}

// audit remembers an act. It has happened: if that cannot be remembered, only the log can say so.
func (s *Server) audit(ctx context.Context, store *redisstore.Store, e redisstore.AuditEntry) {
	if err := store.Audit(context.WithoutCancel(ctx), e); err != nil {
		s.cfg.Logger.Error("an act is not in the audit log", "operation", e.Operation, "path", e.Path, "principal", e.Principal, "status", e.Status, "error", err)
	}
}

// Roles are all roles.
func Roles() []Role { return slices.Clone(redisstore.TokenRoles) }
