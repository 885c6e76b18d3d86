package httpstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// tokensPath is where the API has the tokens of the tenant. The rule who may make them for whom is there.
const tokensPath = "/v1/tokens"

// Tokens returns the tokens of the tenant. Only an admin may ask.
func (s *Store) Tokens(ctx context.Context) (all []redisstore.TokenInfo, err error) {
	return all, s.request(ctx, http.MethodGet, tokensPath, nil, &all)
}

// CreateToken makes a token for the tenant, as [redisstore.Store.CreateToken] does, and returns its text. Only an admin may ask. A server
// makes none for another tenant.
func (s *Store) CreateToken(ctx context.Context, name string, role redisstore.TokenRole, tenant string, ttl time.Duration) (text string, info redisstore.TokenInfo, err error) {
	if tenant != "" && tenant != s.Namespace() {
		return "", info, fmt.Errorf("%w: a token for tenant %.80q: through %s tokens are made for tenant %s alone: leave the tenant out, or make it beside Redis", job.ErrName, tenant, s.shown, s.Namespace())
	}
	ask := map[string]string{"role": string(role)}
	if name != "" {
		ask["name"] = name
	}
	if ttl != 0 {
		ask["ttl"] = ttl.String()
	}
	var made struct {
		Token string `json:"token"`
		redisstore.TokenInfo
	}
	err = s.request(ctx, http.MethodPost, tokensPath, ask, &made)
	return made.Token, made.TokenInfo, err
}

// RevokeToken ends a token of the tenant. Only an admin may ask.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	return s.request(ctx, http.MethodDelete, tokensPath+"/"+url.PathEscape(id), nil, nil)
}

// request sends a request of the API, with a body unless that is nil, and reads the answer into out, unless that is nil.
func (s *Store) request(ctx context.Context, method, path string, body, out any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("%w: what is sent to %s: %w", job.ErrName, s.shown, err)
		}
	}
	answer, err := s.send(ctx, method, s.shown+path, "application/json", raw)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return s.refusal(answer)
	}
	if raw, err = io.ReadAll(answer.Body); err != nil {
		return s.unreachable(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(out); err != nil {
		return fmt.Errorf("%w: the answer of %s cannot be read: %w; is the server of another version than this program?", job.ErrRefused, s.shown, err)
	}
	return nil
}
