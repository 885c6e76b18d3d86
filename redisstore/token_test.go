package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// A token is known by its text alone, and not before or after its time.
func TestTokens(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ctx := t.Context()
		s := enginetest.Open(t, redisstore.Config{URL: url, Namespace: redistest.Namespace(t)})
		text, made, err := s.CreateToken(ctx, "ci", redisstore.TokenOperate, "shop", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Token(ctx, text)
		if err != nil || got != made || got.Tenant != "shop" || got.Role != redisstore.TokenOperate || got.Expires.Sub(got.Created) < 59*time.Minute {
			t.Fatalf("token %+v, %v; made %+v", got, err, made)
		}
		for _, wrong := range []string{"", "weir_", text[:len(text)-1], text + "x", strings.Replace(text, made.ID, "nobody", 1), "weir_" + made.ID + "_"} {
			if _, err := s.Token(ctx, wrong); !errors.Is(err, job.ErrNotFound) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		all, err := s.Tokens(ctx)
		if err != nil || len(all) != 1 || all[0] != made {
			t.Errorf("tokens %+v, %v", all, err)
		}
		if err := s.RevokeToken(ctx, made.ID); err != nil {
			t.Error(err)
		}
		if _, err := s.Token(ctx, text); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("a token that was revoked: %v", err)
		}
		if err := s.RevokeToken(ctx, made.ID); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("revoked twice: %v", err)
		}
		for _, c := range []struct {
			name   string
			role   redisstore.TokenRole
			tenant string
			ttl    time.Duration
			want   error
		}{{"x", "reed", "", 0, job.ErrValue}, {"x", "read", "A", 0, job.ErrName}, {"x", "read", "", -1, job.ErrName}, {"a b", "read", "", 0, job.ErrName}} {
			if _, _, err := s.CreateToken(ctx, c.name, c.role, c.tenant, c.ttl); !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
