package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
)

// outage is a loss of what was stored: of what was acknowledged in its time some may be lost,
// and if a thing is, then all is that came after it in that time.
type outage struct{ from, to time.Time }

func (r *rig) lose(o outage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outages = append(r.outages, o)
}

// forgiven tells whether a message that did not come may have been lost in an outage. times
// is how often each came.
func (r *rig) forgiven(sent []sending, n int, times []int) bool {
	for _, o := range r.outages {
		if sent[n].at.Before(o.from) || sent[n].began.After(o.to) {
			continue
		}
		hole := false
		for i := n + 1; i < len(sent); i++ {
			hole = hole || sent[i].acked && sent[i].at.Before(o.to) && times[i+1] > 0
		}
		if !hole {
			r.count(lostByOutage, 1)
			return true
		}
	}
	return false
}

// undone tells whether a thing that was done in a time may have been lost in an outage.
func (r *rig) undone(s span) bool {
	return slices.ContainsFunc(r.outages, func(o outage) bool { return !s.to.Before(o.from) && !s.from.After(o.to) })
}

// span is the time in which a thing was done: from when it was asked for until that was answered.
type span struct{ from, to time.Time }

const (
	// outageEvery is the mean time from one outage to the next.
	outageEvery = 2 * time.Second
	// lostTime is how much of its past a Redis loses at most.
	lostTime = time.Second
	// heldBack is for how long a Redis with everysec may hold back what it has acknowledged, because
	// it is syncing.
	heldBack = time.Second
)

// powerLosses lets the power fail now and then until ctx ends, besides other faults.
func (r *rig) powerLosses(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	var log tape
	others.Go(func() { log.record(ctx, r.site.redis.Dir()) })
	others.Go(func() { r.besides(ctx) })
	for pause(ctx, r.between(outageEvery/2, 3*outageEvery/2)) {
		r.site.redis.Kill()
		dead := time.Now()
		from, err := log.cut(dead.Add(-r.between(0, lostTime)), r.chance())
		if err != nil {
			return err
		}
		r.lose(outage{from.Add(-heldBack), dead})
		restart(r.site.redis)
		r.watch.back()
		r.fault("power_loss")
	}
	return nil
}

// besides lets workers die, stop and be told to end, half as often as else, until ctx ends.
func (r *rig) besides(ctx context.Context) {
	var kinds []faultKind
	for _, k := range r.kinds() {
		if workerFaults[k.name] || k.name == "reply_lost" && r.site.drop != nil {
			k.rate /= 2
			kinds = append(kinds, k)
		}
	}
	r.storm(ctx, kinds)
}

// tape is how long the log of a Redis was, and when.
type tape struct {
	mu    sync.Mutex
	file  string
	marks []mark
}

type mark struct {
	at   time.Time
	size int64
}

// record notes the length of the log again and again until ctx ends.
func (t *tape) record(ctx context.Context, dir string) {
	for pause(ctx, 20*time.Millisecond) {
		t.look(dir)
	}
}

func (t *tape) look(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now() // what was acknowledged before is in the file, but for what is held back
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return // nothing is known of this moment
	}
	info, err := os.Stat(files[0])
	if err != nil {
		return
	}
	t.file = files[0]
	t.marks = append(t.marks, mark{at, info.Size()})
}

// cut makes the log as long as it was at a time, or shortly before, which it returns, and some of what was written
// next: torn is how much of it, so that the end is mostly in the middle of a transaction. Nobody may write to it now.
func (t *tape) cut(at time.Time, torn float64) (time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.marks) - 1
	for i >= 0 && t.marks[i].at.After(at) {
		i--
	}
	if i < 0 {
		return at, fmt.Errorf("the length of the log of the Redis is not known as it was %s ago", time.Since(at))
	}
	m, next := t.marks[i], t.marks[min(i+1, len(t.marks)-1)]
	t.marks = t.marks[:i+1]
	info, err := os.Stat(t.file)
	if err != nil {
		return m.at, err
	}
	size := m.size + int64(torn*float64(next.size-m.size))
	return m.at, os.Truncate(t.file, min(size, info.Size())) // a repair may have made it shorter than it was then
}

// lagging is how much a replica may lag when nothing keeps it from following.
const lagging = 300 * time.Millisecond

// failovers lets a replica that lags behind take the place of the Redis now and then until
// ctx ends, besides other faults.
func (r *rig) failovers(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	link, replica, err := r.site.follow(ctx, nil)
	if err != nil {
		return err
	}
	others.Go(func() { r.besides(ctx) })
	for n := 0; pause(ctx, r.between(outageEvery/2, 3*outageEvery/2)); n++ {
		from := time.Now().Add(-lagging)
		if _, err := link.Toxics.AddToxicJson(strings.NewReader(`{"name":"x","type":"timeout","attributes":{"timeout":0}}`)); err != nil {
			return err
		}
		pause(context.WithoutCancel(ctx), r.between(0, lostTime-lagging))
		old := r.site.redis
		old.Kill()
		r.lose(outage{from, time.Now()})
		// ctx may end meanwhile: what is begun is brought to its end, or there would be no Redis.
		if err := command(context.WithoutCancel(ctx), replica, "REPLICAOF", "NO", "ONE"); err != nil {
			return err
		}
		r.site.redis = replica
		r.site.drop.Redirect(replica.Addr())
		r.watch.back()
		r.fault("failover")
		link.Stop()
		restart(old)
		if link, replica, err = r.site.follow(context.WithoutCancel(ctx), old); err != nil {
			return err
		}
	}
	return nil
}

// follow makes a server, or a new one if it is nil, a replica of the site's Redis, through a
// network that can be made to fail, and waits until it is.
func (s *site) follow(ctx context.Context, replica *redistest.Server) (link *toxiproxy.Proxy, _ *redistest.Server, err error) {
	if replica == nil {
		if replica, err = s.server(); err != nil {
			return nil, nil, err
		}
	}
	s.links++
	link = toxiproxy.NewProxy(s.toxics, fmt.Sprintf("link-%d", s.links), "127.0.0.1:0", s.redis.Addr())
	if err := link.Start(); err != nil {
		return nil, nil, err
	}
	s.host.Cleanup(link.Stop)
	_, port, _ := strings.Cut(link.Listen, ":")
	if err := command(ctx, replica, "REPLICAOF", "127.0.0.1", port); err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		rdb := redis.NewClient(&redis.Options{Addr: replica.Addr()})
		info, err := rdb.Info(ctx, "replication").Result()
		_ = rdb.Close()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			return link, replica, nil
		}
		if time.Now().After(deadline) || !pause(ctx, 20*time.Millisecond) {
			return nil, nil, fmt.Errorf("the replica does not follow: %w: %s", err, info)
		}
	}
}

// command gives a server a command.
func command(ctx context.Context, s *redistest.Server, args ...any) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	if err := rdb.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("%v: %w", args, err)
	}
	return nil
}
