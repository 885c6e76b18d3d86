package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Claim implements store.Names.
func (s *Store) Claim(ctx context.Context, alias string, id job.ID) (job.ID, error) {
	return s.alias(ctx, "add", alias, id)
}

// Once implements store.Names.
func (s *Store) Once(ctx context.Context, key string, id job.ID) (job.ID, error) {
	k := s.keys.once(key)
	for {
		err := s.rdb.SetArgs(ctx, k, string(id), redis.SetArgs{Mode: "NX", TTL: job.OnceFor}).Err()
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, redis.Nil) {
			return "", s.explain(err)
		}
		known, err := s.rdb.Get(ctx, k).Result()
		if err == nil {
			return job.ID(known), nil
		}
		if !errors.Is(err, redis.Nil) { // else it has just expired
			return "", s.explain(err)
		}
	}
}

// Forget lets a key of Once be free again.
func (s *Store) Forget(ctx context.Context, key string) error {
	return s.explain(s.rdb.Del(ctx, s.keys.once(key)).Err())
}

// Unclaim implements store.Names.
func (s *Store) Unclaim(ctx context.Context, alias string, id job.ID) error {
	holder, err := s.alias(ctx, "remove", alias, id)
	if err == nil && holder != id {
		return fmt.Errorf("%w: job %s has no alias %q", job.ErrNotFound, id, alias)
	}
	return err
}

// alias binds or removes an alias and returns whose it is, or was.
func (s *Store) alias(ctx context.Context, what, alias string, id job.ID) (job.ID, error) {
	p := scriptAlias
	if what == "remove" {
		p = p.freeing()
	}
	reply, err := s.run(ctx, p, s.keys.hub(), what, alias, string(id), rand.Text())
	if err != nil {
		return "", err
	}
	var d decoder
	return holderOf(&d, reply, id)
}

// holderOf reads the answer of alias_set.lua for a job.
func holderOf(d *decoder, reply any, id job.ID) (job.ID, error) {
	holder := d.str(reply)
	if holder == "many" {
		return "", fmt.Errorf("%w: job %s has %d aliases, as many as there may be: take one away first", job.ErrTooLarge, id, job.MaxAliases)
	}
	return job.ID(holder), d.err
}

// Resolve implements store.Names.
func (s *Store) Resolve(ctx context.Context, alias string) (job.ID, error) {
	id, err := s.rdb.HGet(ctx, s.keys.aliases(), alias).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("%w: no job has the alias %q", job.ErrNotFound, alias)
	}
	if err != nil {
		return "", s.explain(err)
	}
	return job.ParseID(id)
}

// Aliases implements store.Names.
func (s *Store) Aliases(ctx context.Context, id job.ID) ([]string, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.aliasesOf(id)).Result()
	sort.Strings(names)
	return names, s.explain(err)
}

// Prefixed implements store.Names.
func (s *Store) Prefixed(ctx context.Context, prefix string, limit int) (ids []job.ID, err error) {
	x := s.rangeOf(s.keys.index, redis.ZRangeBy{Min: "[" + prefix, Max: "[" + prefix + "\xff"}, 1)
	for len(ids) < limit {
		more, err := x.next(ctx, limit-len(ids))
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			break
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

// Register implements store.Types.
func (s *Store) Register(ctx context.Context, types []job.TypeInfo) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	types = slices.DeleteFunc(slices.Clone(types), func(t job.TypeInfo) bool { return delivery.IsPrivate(t.Queue) }) // it ends with its process
	var fields []any
	var names []string
	for _, t := range types {
		t.Registered = now.UTC()
		raw, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("registering type %q: %w", t.Type, err)
		}
		names = append(names, t.Queue+" "+t.Type)
		fields = append(fields, t.Queue+" "+t.Type, raw)
	}
	if len(fields) == 0 {
		return nil
	}
	before, err := s.rdb.HMGet(ctx, s.keys.types(), names...).Result()
	if err == nil {
		err = s.roomForTypes(ctx, before)
	}
	if err == nil {
		err = s.writeTypes(ctx, fields)
	}
	if outOfMemory(err) && s.registered(ctx, types) {
		return nil // so that engines can start, and end what is to be deleted
	}
	if err != nil {
		return s.explain(err)
	}
	return s.newLimits(ctx, types, before)
}

// roomForTypes refuses more types than there may be, by what is registered of those to come: nil for none. Calls at the same time may
// exceed it a little.
func (s *Store) roomForTypes(ctx context.Context, before []any) error {
	added := 0
	for _, known := range before {
		if known == nil {
			added++
		}
	}
	if added == 0 {
		return nil
	}
	n, err := s.rdb.HLen(ctx, s.keys.types()).Result()
	if err == nil && int(n)+added > job.MaxTypes {
		err = fmt.Errorf("%w: %d types of jobs are registered, and %d are to come, at most %d are allowed; weir types forget removes those that nobody runs", job.ErrTooLarge, n, added, job.MaxTypes)
	}
	return err
}

// registered tells whether types are registered as they are, whenever that was.
func (s *Store) registered(ctx context.Context, types []job.TypeInfo) bool {
	for _, t := range types {
		raw, err := s.rdb.HGet(ctx, s.keys.types(), t.Queue+" "+t.Type).Bytes()
		var known job.TypeInfo
		if err != nil || json.Unmarshal(raw, &known) != nil {
			return false
		}
		t.Registered = known.Registered
		if now, err := json.Marshal(t); err != nil || !bytes.Equal(now, raw) {
			return false
		}
	}
	return true
}

// Type implements store.Types.
func (s *Store) Type(ctx context.Context, queue, name string) (*job.TypeInfo, error) {
	raw, err := s.rdb.HGet(ctx, s.keys.types(), queue+" "+name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, s.unknownType(ctx, queue, name)
	}
	if err != nil {
		return nil, s.explain(err)
	}
	t := &job.TypeInfo{}
	if err := json.Unmarshal([]byte(raw), t); err != nil {
		return nil, fmt.Errorf("reading the registered type %q: %w", name, err)
	}
	return t, nil
}

// ForgetType takes a type of a queue out of the catalogue: one that no engine has any more. While one that lives does, that is job.ErrServed;
// a type that is not in the catalogue is job.ErrUnknownType. An engine that registers it again brings it back.
func (s *Store) ForgetType(ctx context.Context, queue, name string) error {
	engines, err := s.Engines(ctx)
	if err != nil {
		return err
	}
	for i := range engines {
		if e := &engines[i]; e.Takes(queue, name) {
			return fmt.Errorf("forgetting type %q of queue %q: %w: process %d on %s", name, queue, job.ErrServed, e.PID, cmp.Or(e.Host, "-"))
		}
	}
	n, err := s.rdb.HDel(ctx, s.keys.types(), queue+" "+name).Result()
	if err == nil && n == 0 {
		return s.unknownType(ctx, queue, name)
	}
	return s.explain(err)
}

// unknownType says which types there are instead.
func (s *Store) unknownType(ctx context.Context, queue, name string) error {
	types, err := s.Types(ctx)
	if err != nil {
		return err
	}
	var here, elsewhere []string
	for _, t := range types {
		if t.Queue == queue {
			here = append(here, t.Type)
		}
		if t.Type == name {
			elsewhere = append(elsewhere, t.Queue)
		}
	}
	switch {
	case len(elsewhere) > 0:
		return fmt.Errorf("%w: queue %q has no worker of type %q, but queue %s has", job.ErrUnknownType, queue, name, strings.Join(elsewhere, ", "))
	case len(here) > 0:
		return fmt.Errorf("%w: queue %q has no worker of type %q: %s", job.ErrUnknownType, queue, name, port.Suggest(name, here))
	}
	return fmt.Errorf("%w: no engine has registered workers for queue %q in namespace %s; start one, such as weir worker --namespace %s --queue %s", job.ErrUnknownType, queue, s.Namespace(), s.Namespace(), queue)
}
