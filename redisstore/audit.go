package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// AuditKept is how many of the last acts over HTTP a namespace remembers.
const AuditKept = 10_000

// AuditEntry is one act over HTTP: who wanted what, and what he was answered.
type AuditEntry struct {
	At        time.Time `json:"at"`
	Principal string    `json:"principal"` // the name of the token, or local
	Role      TokenRole `json:"role"`
	Operation string    `json:"operation"` // as in the OpenAPI document
	Path      string    `json:"path"`
	On        string    `json:"on,omitempty"` // what it was done to, if the path does not say it: a job, a queue or a channel
	Status    int       `json:"status"`       // of the answer
	From      string    `json:"from"`         // the address of the client
}

// acts are those that are to go into the audit log: all that come while others are written go there together.
type acts struct {
	mu      sync.Mutex
	waiting []any          // entries
	told    []chan<- error // for each of them
	writing bool
}

// auditTime is how long the audit log may take to be written.
const auditTime = 5 * time.Second

// Audit remembers an act.
func (s *Store) Audit(ctx context.Context, e AuditEntry) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	s.acts.mu.Lock()
	s.acts.waiting, s.acts.told = append(s.acts.waiting, raw), append(s.acts.told, done)
	if !s.acts.writing {
		s.acts.writing = true
		go s.writeActs(context.WithoutCancel(ctx))
	}
	s.acts.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeActs writes the acts that wait, in their order, until there are none.
func (s *Store) writeActs(ctx context.Context) {
	for {
		s.acts.mu.Lock()
		entries, told := s.acts.waiting, s.acts.told
		s.acts.waiting, s.acts.told, s.acts.writing = nil, nil, len(entries) > 0
		s.acts.mu.Unlock()
		if len(entries) == 0 {
			return
		}
		err := s.writeAudit(ctx, entries)
		for _, done := range told {
			done <- err
		}
	}
}

func (s *Store) writeAudit(ctx context.Context, entries []any) error {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	both := s.rdb.Pipeline()
	both.LPush(ctx, s.keys.audit(), entries...)
	both.LTrim(ctx, s.keys.audit(), 0, AuditKept-1)
	_, err := both.Exec(ctx)
	return s.explain(err)
}

// AuditLog returns the last n acts, the newest first.
func (s *Store) AuditLog(ctx context.Context, n int) ([]AuditEntry, error) {
	list, err := s.rdb.LRange(ctx, s.keys.audit(), 0, int64(n)-1).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	all := make([]AuditEntry, len(list))
	for i, raw := range list {
		if err := json.Unmarshal([]byte(raw), &all[i]); err != nil {
			return nil, fmt.Errorf("entry %d of the audit log in Redis: %w", i, err)
		}
	}
	return all, nil
}
