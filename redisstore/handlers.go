package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// SetHandler implements store.Handlers.
func (s *Store) SetHandler(ctx context.Context, t job.TypeInfo, text json.RawMessage) (int64, error) {
	typ := t.Type
	if err := job.CheckName("type", typ); err != nil {
		return 0, err
	}
	if len(text) > store.MaxHandler {
		return 0, fmt.Errorf("%w: the handler of type %q has %d bytes, at most %d are allowed", job.ErrTooLarge, typ, len(text), store.MaxHandler)
	}
	if err := s.registerHandler(ctx, t); err != nil {
		return 0, err
	}
	reply, err := s.run(ctx, scriptHandler, s.keys.hub(), typ, rand.Text(), []byte(text), store.MaxHandlerVersions, store.MaxHandlers)
	if err != nil {
		return 0, err
	}
	var d decoder
	version := d.int(d.at(d.list(reply), 0))
	if d.err == nil && version < 0 {
		return 0, fmt.Errorf("%w: %d types of namespace %s have, or had, a handler already, as many as there may be", job.ErrLimit, store.MaxHandlers, s.Namespace())
	}
	return version, d.err
}

// registerHandler lets jobs of a type be created before an engine has its handler.
func (s *Store) registerHandler(ctx context.Context, t job.TypeInfo) error {
	known, err := s.rdb.HExists(ctx, s.keys.handlers(), t.Type).Result()
	if err != nil {
		return s.explain(err)
	}
	_, err = s.Type(ctx, t.Queue, t.Type)
	switch {
	case err == nil && known:
		return nil
	case err == nil:
		return fmt.Errorf("%w: type %q is one of a program: give the handler another name", job.ErrExists, t.Type)
	case !errors.Is(err, job.ErrUnknownType):
		return err
	}
	t.Engine = true // its handler runs in one
	return s.Register(ctx, []job.TypeInfo{t})
}

// HandlerVersions implements store.Handlers.
func (s *Store) HandlerVersions(ctx context.Context, typ string) ([]store.HandlerVersion, error) {
	list, err := s.rdb.LRange(ctx, s.keys.handler(typ), 0, store.MaxHandlerVersions-1).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	all := make([]store.HandlerVersion, len(list))
	for i, text := range list {
		if all[i], err = handlerVersion(typ, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Handlers implements store.Handlers.
func (s *Store) Handlers(ctx context.Context) (all []store.HandlerVersion, revision int64, err error) {
	found, err := s.rdb.HGetAll(ctx, s.keys.handlers()).Result()
	if err != nil {
		return nil, 0, s.explain(err)
	}
	var d decoder
	for typ, text := range found {
		if typ == "" {
			revision = d.int(text)
			continue
		}
		v, err := handlerVersion(typ, text)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b store.HandlerVersion) int { return cmp.Compare(a.Type, b.Type) })
	return all, revision, d.err
}

// HandlersRevision implements store.Handlers.
func (s *Store) HandlersRevision(ctx context.Context) (int64, error) {
	n, err := s.rdb.HGet(ctx, s.keys.handlers(), "").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, s.explain(err)
}

// handlerVersion reads what handler_set.lua wrote.
func handlerVersion(typ, text string) (store.HandlerVersion, error) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) < 4 {
		return store.HandlerVersion{}, fmt.Errorf("the handler of type %q in Redis is damaged: set it again", typ)
	}
	var d decoder
	v := store.HandlerVersion{Type: typ, Version: d.int(parts[0]), At: time.UnixMilli(d.int(parts[1])).UTC()}
	if parts[3] != "" {
		v.Text = json.RawMessage(parts[3])
	}
	return v, d.err
}
