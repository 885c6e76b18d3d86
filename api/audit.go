package api

import (
	"context"
	"net/http"
	"time"

	"github.com/weirworks/weir/redisstore"
)

// auditInput says which acts are asked for.
type auditInput struct {
	Principal string    `query:"principal" doc:"only what this one did: the name of a token"`
	Operation string    `query:"operation" doc:"only this operation, such as retry-job"`
	Until     time.Time `query:"until" doc:"only acts before this time: that of the last act of one page leads to the next page"`
	Limit     int       `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// auditOperations show who did what.
func (s *Server) auditOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/audit", id: "audit", group: groupSystem, role: redisstore.TokenAdmin, summary: "Show who did what over HTTP, the last acts first",
	}, func(ctx context.Context, s *session, in *auditInput) (*reply[[]redisstore.AuditEntry], error) {
		if in.Principal == "" && in.Operation == "" && in.Until.IsZero() {
			return answer(s.store.AuditLog(ctx, in.Limit))
		}
		all, err := s.store.AuditLog(ctx, redisstore.AuditKept)
		return answer(in.passing(all), err)
	})
}

// passing are the first acts that were asked for.
func (in *auditInput) passing(all []redisstore.AuditEntry) []redisstore.AuditEntry {
	some := []redisstore.AuditEntry{}
	for _, e := range all {
		if len(some) == in.Limit {
			break
		}
		if (in.Principal == "" || e.Principal == in.Principal) && (in.Operation == "" || e.Operation == in.Operation) && (in.Until.IsZero() || e.At.Before(in.Until)) {
			some = append(some, e)
		}
	}
	return some
}
