package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

const (
	// muchUnread is how many messages an Out port that nobody has ever read has before that is
	// worth a warning.
	muchUnread = 10_000
	// portRoots is how many of the oldest, and of the newest, root jobs are looked at with what is
	// below them, and portJobs how many jobs at most. A deep look finds all.
	portRoots = 50
	portJobs  = 1_000
)

// unread is an Out port that only grows: it keeps many messages, and nobody has ever read one.
type unread struct {
	id   job.ID
	name string // of the job, or of its type
	port string
	n    int64
}

func (u unread) String() string {
	return fmt.Sprintf("port %s of job %s (%s) with %d messages", u.port, u.name, u.id, u.n)
}

// outputs looks for Out ports that only grow, among the jobs of the oldest and newest trees, or
// among those that a deep look came by.
func (e *examiner) outputs(ctx context.Context) error {
	if e.x.Deep {
		if !e.tellUnread(e.unread) {
			e.ok("no port only grows")
		}
		return nil
	}
	if e.keys.shards == 0 {
		e.add(Skipped, "", "the number of shards is not known")
		return nil
	}
	var ids []job.ID
	for _, order := range []int{1, -1} {
		roots, err := e.rangeOf(e.keys.index, redis.ZRangeBy{Min: "-", Max: "+"}, order).next(ctx, portRoots)
		if err != nil {
			return err
		}
		for _, id := range roots {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	var ports []unread
	looked := 0
	for len(ids) > 0 && looked < portJobs {
		some := ids[:min(len(ids), scanBatch)]
		ids = ids[len(some):]
		looked += len(some)
		found, children, err := e.outputsOf(ctx, some)
		if err != nil {
			return err
		}
		ports, ids = append(ports, found...), append(ids, children...)
	}
	if found, err := e.growing(ctx, ports); err != nil || e.tellUnread(found) {
		return err
	}
	e.ok("looked at %s: no port only grows", counted(looked, "job"))
	return nil
}

// outputsOf returns the Out ports of some jobs, and their children, of each the first ones.
func (e *examiner) outputsOf(ctx context.Context, ids []job.ID) (ports []unread, children []job.ID, err error) {
	fields, below := make([]*redis.StringSliceCmd, len(ids)), make([]*redis.ScanCmd, len(ids))
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			fields[i] = p.HKeys(ctx, e.keys.job(id, ""))
			below[i] = p.HScan(ctx, e.keys.job(id, childrenSuffix), 0, "", scanBatch)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	var absent []job.ID
	for i, id := range ids {
		if len(fields[i].Val()) == 0 {
			absent = append(absent, id)
		}
	}
	records, err := e.recorded(ctx, absent)
	if err != nil {
		return nil, nil, err
	}
	for i, id := range ids {
		names, r := fields[i].Val(), records[id]
		for _, field := range slices.AppendSeq(names, maps.Keys(r.fields)) {
			if name, ok := strings.CutPrefix(field, "o."); ok {
				ports = append(ports, unread{id: id, port: name})
			}
		}
		family, _ := below[i].Val() // names and IDs by turns
		for n := 1; n < len(family); n += 2 {
			children = append(children, job.ID(family[n]))
		}
		children = slices.AppendSeq(children, maps.Values(r.children))
	}
	return ports, children, nil
}

// growing returns those of some Out ports that only grow.
func (e *examiner) growing(ctx context.Context, ports []unread) (found []unread, err error) {
	for some := range slices.Chunk(ports, scanBatch) {
		lengths := make([]*redis.IntCmd, len(some))
		if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, u := range some {
				lengths[i] = p.LLen(ctx, e.keys.job(u.id, ":o:"+u.port))
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for i, u := range some {
			if u.n = lengths[i].Val(); u.n < muchUnread {
				continue
			}
			f, err := e.readFields(ctx, []job.ID{u.id}, "type", "name", "h.o."+u.port)
			if err != nil {
				return nil, err
			}
			if cmp.Or(f[0][2], "0") == "0" {
				u.name = cmp.Or(f[0][1], baseType(f[0][0]))
				found = append(found, u)
			}
		}
	}
	return found, nil
}

// tellUnread makes a finding of ports that only grow, and tells whether there are any.
func (e *examiner) tellUnread(ports []unread) bool {
	if len(ports) == 0 {
		return false
	}
	u := ports[0]
	e.warn(fmt.Sprintf("read it (weir read %s %s --all), wire it to a job, do not export it, or give it a channel, with which it keeps nothing", u.id, u.port),
		"nobody has ever read the messages of %s, which fill Redis: %s", counted(len(ports), "port"), few(ports))
	return true
}

// outputsAmong returns the Out ports that keys are the lists of.
func outputsAmong(keys []string) []unread {
	var ports []unread
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "}:j:")
		text, port, ok := strings.Cut(name, ":o:")
		if id, err := job.ParseID(text); ok && err == nil {
			ports = append(ports, unread{id: id, port: port})
		}
	}
	return ports
}
