package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/mutation"
	"github.com/weirworks/weir/job"
)

// A script acts in one shard. What it wants done in another it leaves as an order in its
// shard's outbox; what would take too long it leaves as background tasks. The process that ran the
// script does the first of it at once and the rest in the background, or the sweeper does.
// The other shard remembers the number of the last order it carried out for each outbox:
// so orders are carried out in order and once, whoever delivers them, however often.

const (
	relayMember           = "!mail"
	backgroundTasksMember = "!chores"
	joiningMember         = "!joining "
	fullMember            = "!full "
	connectMember         = "!connect "
	rateMember            = "!rate "
	limitedMember         = "!limited "
	relayBatch            = 200
	relayBytes            = 1 << 20
	backgroundTasksBatch  = 25
	relayTime             = 10 * time.Second // then the sweeper goes on
	relayTries            = 3                // when servers turn out to have new lives
)

// relays do in the background what scripts leave to be done, one at a time of each kind and shard.
type relays struct {
	mu     sync.Mutex
	busy   map[string]*errand // by due key and what is done there
	wg     sync.WaitGroup
	ctx    context.Context //nolint:containedctx // from Open to Close: what relays do has no caller
	cancel context.CancelFunc
	inline bool // in the foreground instead: time stands still meanwhile
}

// errand is something that a relay is doing.
type errand struct {
	done  chan struct{} // closed at its end
	again bool          // it was asked for meanwhile: there may be more of it
}

func newRelays(inline bool) *relays {
	c := &relays{busy: map[string]*errand{}, inline: inline}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// send empties the outbox beside a due key, unless somebody does already.
func (c *relays) send(s *Store, due string) {
	c.do(due+" "+relayMember, func(ctx context.Context) {
		for left, err := int64(1), error(nil); left > 0 && err == nil; {
			left, err = s.relay(ctx, due)
		}
	})
}

// do has something done for a while; if it is being done already, once more at the end of that. What is left then, or
// because of an error, is the sweeper's.
func (c *relays) do(what string, fn func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.busy[what]; e != nil {
		e.again = true
		return
	}
	if c.ctx.Err() != nil {
		return
	}
	e := &errand{done: make(chan struct{}), again: true}
	c.busy[what] = e
	c.wg.Go(func() {
		defer close(e.done)
		ctx, cancel := context.WithTimeout(c.ctx, relayTime)
		defer cancel()
		for c.again(ctx, what) {
			fn(ctx)
		}
	})
	if c.inline {
		c.mu.Unlock()
		<-e.done
		c.mu.Lock()
	}
}

// again tells whether an errand is to be done, once more; if not it ends.
func (c *relays) again(ctx context.Context, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.busy[what]
	if e.again && ctx.Err() == nil {
		e.again = false
		return true
	}
	delete(c.busy, what)
	return false
}

// wait returns when all that is being done now has ended.
func (c *relays) wait(ctx context.Context) {
	c.mu.Lock()
	busy := slices.Collect(maps.Values(c.busy))
	c.mu.Unlock()
	for _, e := range busy {
		select {
		case <-e.done:
		case <-ctx.Done():
			return
		}
	}
}

// stop ends all relays and waits for them.
func (c *relays) stop() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
}

// urgent does what members of `due` stand for that are no jobs. What may take long goes on in the background, so that
// neither a sweeper nor an engine waits for it. What there is no memory for is left in `due`.
func (s *Store) urgent(ctx context.Context, due string, members []string) error {
	var full []string
	var first error
	for _, m := range members {
		var err error
		switch {
		case m == relayMember:
			var left int64
			if left, err = s.relay(ctx, due); left > 0 && err == nil {
				s.relays.send(s, due)
			}
		case m == backgroundTasksMember:
			s.relays.do(due+" "+backgroundTasksMember, func(ctx context.Context) { _ = s.backgroundTasks(ctx, due) })
		case m == retainMember:
			s.relays.do(due+" "+retainMember, func(ctx context.Context) { _ = s.expire(ctx, due) })
		case strings.HasPrefix(m, rateMember):
			if at, err := strconv.ParseInt(strings.TrimPrefix(m, rateMember), 10, 64); err == nil {
				s.broker.Due(ctx, s.keys.shardAt(due), at)
			}
		case strings.HasPrefix(m, joiningMember):
			err = s.repair(ctx, m)
		case strings.HasPrefix(m, connectMember):
			s.relays.do(m, func(ctx context.Context) { _ = s.resume(ctx, m) })
		case strings.HasPrefix(m, fullMember):
			full = append(full, m)
		}
		if first == nil && !outOfMemory(err) {
			first = err
		}
	}
	if err := s.raiseLimits(ctx, full); first == nil && !outOfMemory(err) {
		first = err
	}
	return first
}

// backgroundTasks does a shard's background tasks until none are left.
func (s *Store) backgroundTasks(ctx context.Context, due string) error {
	return s.pieces(ctx, due, backgroundTasksMember, func() (any, error) { return s.run(ctx, scriptBackgroundTasks, due, backgroundTasksBatch) })
}

// pieces runs a script that does long work in pieces, of which the member of `due` reminds the sweeper, until nothing is left.
func (s *Store) pieces(ctx context.Context, due, member string, some func() (any, error)) error {
	for {
		reply, err := some()
		if err != nil {
			return err
		}
		var d decoder
		l := d.list(reply)
		left := d.int(d.at(l, 0))
		more := d.todo(d.at(l, 1), s.keys.shardAt(due))
		if d.err != nil {
			return d.err
		}
		more.members = slices.DeleteFunc(more.members, func(m string) bool { return m == member }) // that is done here
		if err := s.urgent(ctx, due, more.members); err != nil {
			return err
		}
		_ = s.broker.Ring(ctx, more.notifications) // else the sweeper does
		if left == 0 {
			return nil
		}
		if member == retainMember {
			failpoint.Hit(failpoint.MidExpire)
		} else {
			failpoint.Hit(failpoint.MidTerminate)
		}
	}
}

// order is one entry of an outbox.
type order struct{ entry, number, text string }

// lives are the lives of servers, as far as a process knows them, by where they were asked. A
// server that comes back, or a replica that takes its place, may have lost its last writes. Orders
// that were read before may be among those, and come again under other numbers: so they are
// carried out, and taken out of the outbox, only in the life in which they were read.
type lives struct {
	mu    sync.Mutex
	known map[string]string // never changed, but replaced
}

func (l *lives) all() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

func (l *lives) learn(where, life string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := maps.Clone(l.known)
	if known == nil {
		known = map[string]string{}
	}
	known[where] = life
	l.known = known
}

// server says which server has a due key, as lives know it.
func (s *Store) server(due string) string {
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		return due
	}
	return ""
}

// errOtherLife: the server has another life than when what is asked of it was read.
var errOtherLife = errors.New("the server has started anew, or another took its place")

// relay delivers the first orders of a shard's outbox and returns how many are left.
func (s *Store) relay(ctx context.Context, due string) (left int64, err error) {
	for range relayTries {
		if left, err = s.relayOnce(ctx, due); !errors.Is(err, errOtherLife) {
			break
		}
	}
	return left, err
}

func (s *Store) relayOnce(ctx context.Context, due string) (left int64, err error) {
	known := s.lives.all() // before anything is read
	reply, err := s.run(ctx, scriptRelayRead, due, relayBatch, relayBytes)
	if err != nil {
		return 0, err
	}
	var d decoder
	both := d.list(reply)
	l := d.list(d.at(both, 1))
	done := []any{d.str(d.at(both, 0))}
	orders := map[string][]order{} // by the due key of where they go, each in order
	for i := 0; i+2 < len(l); i += 3 {
		entry := d.str(l[i])
		number, _, _ := strings.Cut(entry, "-")
		to := s.address(d.str(l[i+1]))
		orders[to] = append(orders[to], order{entry, number, d.str(l[i+2])})
	}
	if d.err != nil {
		return 0, d.err
	}
	if mutation.On(mutation.EarlyAck) && len(known) > 0 {
		for _, some := range orders {
			if _, err = s.run(ctx, scriptRelayDone, due, entries(done, some)...); err != nil {
				return 0, err
			}
		}
	}
	failpoint.Hit(failpoint.BeforeRelayApplied)
	var wrong error
	for to, some := range orders { // one that takes none now keeps no other from it
		n, err := s.carry(ctx, known[s.server(to)], due, to, some)
		if err != nil && !errors.Is(wrong, errOtherLife) { // all of those are learned at once
			wrong = err
		}
		done = entries(done, some[:n])
	}
	if errors.Is(wrong, errOtherLife) {
		return 0, wrong
	}
	failpoint.Hit(failpoint.AfterRelayBeforeDone)
	if reply, err = s.run(ctx, scriptRelayDone, due, done...); err != nil {
		return 0, err
	}
	return d.int(reply), errors.Join(wrong, d.err)
}

// entries appends the entries of orders in their outbox.
func entries(to []any, orders []order) []any {
	for _, o := range orders {
		to = append(to, o.entry)
	}
	return to
}

// address turns "hub", "shard:<n>" or a job's ID into a due key.
func (s *Store) address(to string) string {
	if to == "hub" {
		return s.keys.hub()
	}
	if n, ok := strings.CutPrefix(to, "shard:"); ok {
		return "weir:{" + s.keys.namespace + ":" + n + "}:due"
	}
	return s.keys.dueOf(job.ID(to))
}

// carry has orders of one outbox carried out in one shard, if its server has still that life, and returns how many were.
func (s *Store) carry(ctx context.Context, life, from, to string, orders []order) (done int, err error) {
	for done < len(orders) { // one script carries out as many as it may
		args := []any{life, from, len(orders) - done}
		for _, o := range orders[done:] {
			args = append(args, o.number, o.text)
		}
		reply, err := s.run(ctx, scriptRelay, to, args...)
		if err != nil {
			return done, err
		}
		var d decoder
		l := d.list(reply)
		if d.str(d.at(l, 0)) == "life" {
			s.lives.learn(s.server(to), d.str(d.at(l, 1)))
			return done, errors.Join(errOtherLife, d.err)
		}
		n, more := int(d.int(d.at(l, 2))), d.todo(d.at(l, 1), s.keys.shardAt(to))
		if d.err != nil {
			return done, d.err
		}
		done += n
		s.hand(ctx, to, more)
	}
	return done, nil
}
