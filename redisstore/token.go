package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// TokenRole is what somebody who holds a token may do.
type TokenRole string

// The roles of tokens.
const (
	TokenRead    TokenRole = "read"    // looks at jobs and changes nothing
	TokenOperate TokenRole = "operate" // acts on jobs, too
	TokenWork    TokenRole = "work"    // looks at jobs, and runs those of its types
	TokenAdmin   TokenRole = "admin"   // may do all
)

// TokenRoles are all roles of tokens.
var TokenRoles = []TokenRole{TokenRead, TokenOperate, TokenWork, TokenAdmin}

// TokenInfo describes a token; the token itself is not kept.
type TokenInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // of who holds it, for logs
	Role    TokenRole `json:"role"`
	Tenant  string    `json:"tenant"` // the namespace that it is for
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // never if zero
}

// storedToken is what is kept of a token.
type storedToken struct {
	TokenInfo
	Digest string `json:"digest"` // SHA-256 of its secret
}

// tokenMark is what the text of a token begins with, so that it is known when it is found where it should not be.
const tokenMark = "weir_"

// IsToken tells whether a text looks like a token that CreateToken made. Whether it is one, Token says.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenMark) }

// CreateToken makes a token and returns its text, which is told once: what is kept is its digest. A ttl of
// zero means that it does not expire; an empty tenant, the store's own namespace. Tokens are kept
// in the store's namespace, whatever tenant they are for.
func (s *Store) CreateToken(ctx context.Context, name string, role TokenRole, tenant string, ttl time.Duration) (text string, info TokenInfo, err error) {
	tenant = cmp.Or(tenant, s.Namespace())
	switch {
	case !slices.Contains(TokenRoles, role):
		known := make([]string, len(TokenRoles))
		for i, r := range TokenRoles {
			known[i] = string(r)
		}
		return "", info, fmt.Errorf("%w: unknown role %.80q of a token: %s", job.ErrValue, role, port.Suggest(string(role), known))
	case !namespaceRE.MatchString(tenant):
		return "", info, fmt.Errorf("%w: tenant %.80q of a token: it is a namespace: use 1 to 63 lower-case letters, digits and '-'", job.ErrName, tenant)
	case ttl < 0:
		return "", info, fmt.Errorf("%w: a token that is valid for %s: use a positive time, or 0 for no limit", job.ErrName, ttl)
	}
	id := strings.ToLower(rand.Text()[:10])
	name = cmp.Or(name, id)
	if err := job.CheckName("token name", name); err != nil {
		return "", info, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return "", info, err
	}
	secret := strings.ToLower(rand.Text() + rand.Text())
	info = TokenInfo{ID: id, Name: name, Role: role, Tenant: tenant, Created: now.UTC().Truncate(time.Second)}
	if ttl > 0 {
		info.Expires = now.Add(ttl).UTC().Truncate(time.Millisecond)
	}
	raw, err := json.Marshal(storedToken{info, digestOf(secret)})
	if err != nil {
		return "", info, err
	}
	if err := s.rdb.HSet(ctx, s.keys.tokens(), id, raw).Err(); err != nil {
		return "", info, s.explain(err)
	}
	return tokenMark + id + "_" + secret, info, nil
}

// Token returns what is known of the token with that text, or an error that wraps
// job.ErrNotFound if there is none, or it has expired.
func (s *Store) Token(ctx context.Context, text string) (TokenInfo, error) {
	unknown := fmt.Errorf("%w: the token", job.ErrNotFound)
	rest, ok := strings.CutPrefix(text, tokenMark)
	id, secret, two := strings.Cut(rest, "_")
	if !ok || !two || len(id) > 32 {
		return TokenInfo{}, unknown
	}
	raw, err := s.rdb.HGet(ctx, s.keys.tokens(), id).Result()
	if errors.Is(err, redis.Nil) {
		return TokenInfo{}, unknown
	}
	if err != nil {
		return TokenInfo{}, s.explain(err)
	}
	var t storedToken
	if err := json.Unmarshal([]byte(raw), &t); err != nil {
		return TokenInfo{}, fmt.Errorf("token %s in Redis: %w", id, err)
	}
	if subtle.ConstantTimeCompare([]byte(digestOf(secret)), []byte(t.Digest)) != 1 {
		return TokenInfo{}, unknown
	}
	if !t.Expires.IsZero() {
		now, err := s.Now(ctx)
		if err != nil {
			return TokenInfo{}, err
		}
		if !now.Before(t.Expires) {
			return TokenInfo{}, unknown
		}
	}
	return t.TokenInfo, nil
}

// Tokens returns what is known of all tokens, also of those that have expired, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]TokenInfo, error) {
	all, err := s.rdb.HGetAll(ctx, s.keys.tokens()).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	list := make([]TokenInfo, 0, len(all))
	for id, raw := range all {
		var t storedToken
		if err := json.Unmarshal([]byte(raw), &t); err != nil {
			return nil, fmt.Errorf("token %s in Redis: %w", id, err)
		}
		list = append(list, t.TokenInfo)
	}
	slices.SortFunc(list, func(a, b TokenInfo) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// RevokeToken ends a token, by its ID. Servers may believe it for some seconds more.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	n, err := s.rdb.HDel(ctx, s.keys.tokens(), id).Result()
	if err == nil && n == 0 {
		return fmt.Errorf("%w: there is no token %.80q", job.ErrNotFound, id)
	}
	return s.explain(err)
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
