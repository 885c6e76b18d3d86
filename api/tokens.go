package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// tokenOperations are those on tokens. An admin has to do with those of his tenant alone.
func (s *Server) tokenOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/tokens", id: "list-tokens", group: groupSystem, role: redisstore.TokenAdmin, summary: "List the tokens of the tenant, without what would let anybody in",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]redisstore.TokenInfo], error) {
		return answer(s.tokens(ctx))
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/tokens", id: "create-token", group: groupSystem, role: redisstore.TokenAdmin, status: http.StatusCreated, summary: "Make a token for the tenant of who asks",
		about: "The answer is the only one that has the text of the token: what is kept is its digest. Tokens for other tenants are made beside Redis, by weir token create.",
	}, createToken)
	add(s, operation{
		method: http.MethodDelete, path: "/v1/tokens/{id}", id: "revoke-token", group: groupSystem, role: redisstore.TokenAdmin, status: http.StatusNoContent, summary: "End a token of the tenant",
		about: "Other servers may believe it for five seconds more.",
	}, revokeToken)
}

// tokens are those of the tenant of who asks.
func (s *session) tokens(ctx context.Context) ([]redisstore.TokenInfo, error) {
	all, err := s.cfg.Store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return some(slices.DeleteFunc(all, func(t redisstore.TokenInfo) bool { return t.Tenant != s.principal.Tenant })), nil
}

// demandTokens refuses to change tokens where none is demanded: whoever reaches the server could let himself in for later.
func (s *session) demandTokens() error {
	if s.cfg.Tokens {
		return nil
	}
	return problem(Kind{"forbidden", http.StatusForbidden, 8}, "this server demands no tokens, so it neither makes nor ends any: use weir token beside Redis, or start weir serve with --tokens")
}

// NewToken describes a token that is to be made.
type NewToken struct {
	Role Role   `json:"role" enum:"read,operate,work,admin" doc:"what its holder may do"`
	Name string `json:"name,omitempty" doc:"who holds it, for logs; its ID if it is missing"`
	TTL  string `json:"ttl,omitempty" doc:"how long it is valid, like 12h or 90d; until it is revoked if this is missing"`
}

// MadeToken is a token that was made.
type MadeToken struct {
	Token string `json:"token" doc:"the token, which is told this once"`
	redisstore.TokenInfo
}

func createToken(ctx context.Context, s *session, in *struct{ Body NewToken }) (*reply[MadeToken], error) {
	if err := s.demandTokens(); err != nil {
		return nil, err
	}
	var ttl time.Duration
	if in.Body.TTL != "" {
		var err error
		if ttl, err = job.ParseRetention(in.Body.TTL); err != nil || ttl == job.Forever {
			return nil, wrong("body.ttl: %.40q is no time: write it like 90s, 12h or 90d", in.Body.TTL)
		}
	}
	text, info, err := s.cfg.Store.CreateToken(ctx, in.Body.Name, in.Body.Role, s.principal.Tenant, ttl)
	return answer(MadeToken{text, info}, err)
}

func revokeToken(ctx context.Context, s *session, in *struct {
	ID string `path:"id"`
},
) (*nothing, error) {
	if err := s.demandTokens(); err != nil {
		return nil, err
	}
	all, err := s.tokens(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	if !slices.Contains(ids, in.ID) {
		return nil, problem(KindOf(job.ErrNotFound), "there is no token %.80q: %s", in.ID, port.Suggest(in.ID, ids))
	}
	if err := s.cfg.Store.RevokeToken(ctx, in.ID); err != nil {
		return nil, err
	}
	s.tenants.forget(in.ID)
	return nil, nil
}
