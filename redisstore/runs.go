package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/mutation"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// mostClaims is how many places a job needs: of a limit and of a rate of its type, and of one of its queue.
const mostClaims = 3

// Begin implements store.Runs.
func (s *Store) Begin(ctx context.Context, id job.ID, b store.Begin) (*store.Snapshot, error) {
	args := beginArgs([]any{string(id)}, b, false, nil, s.keys.shards)
	due := s.keys.dueOf(id)
	for claims := 0; ; claims++ {
		reply, err := s.run(ctx, scriptBegin, due, args...)
		if err != nil {
			return nil, err
		}
		snap, err := s.seen(ctx, reply, id, b)
		if claims == mostClaims || !errors.Is(err, job.ErrLimit) {
			return snap, err
		}
		if _, err := s.relay(ctx, due); err != nil { // the claim of a place, which may be free
			return nil, err
		}
	}
}

// Pop implements store.Runs.
func (s *Store) Pop(ctx context.Context, queue string, shard int, gen int64, b store.Begin, types []string) ([]*store.Snapshot, error) {
	caller := s.callers.enter()
	defer s.callers.leave(caller)
	args := []any{queue, "", s.callers.process, caller}
	if gen >= 0 {
		args[1] = gen
	}
	due := s.keys.due(shard)
	reply, err := s.run(ctx, scriptPop, due, beginArgs(args, b, true, types, s.keys.shards)...)
	if err != nil {
		return nil, err
	}
	var d decoder
	l := d.list(reply)
	id, left := d.str(d.at(l, 0)), d.todo(d.at(l, 2), shard)
	if d.err != nil {
		return nil, d.err
	}
	s.passOn(ctx, due, left, types)
	var begun []*store.Snapshot
	if len(l) > 4 { // the job is one of several
		t := &settling{begin: &b}
		if id != "" {
			s.begun(t, []any{b.Token, id, l[1]})
		}
		s.begun(t, d.list(l[4]))
		s.parkOdd(ctx, t)
		begun = s.shown(ctx, t.begun)
	} else if id != "" {
		snap, err := s.seen(ctx, l[1], job.ID(id), b)
		if err != nil {
			return nil, err
		}
		begun = []*store.Snapshot{snap}
	}
	if len(begun) > 0 {
		begun[0].Ready = int(d.int(d.at(l, 3)))
	}
	return begun, d.err
}

// passOn sends the notifications that one left which had jobs of some types.
func (s *Store) passOn(ctx context.Context, due string, left todo, types []string) {
	own := left.notifications[:0:0]
	for _, b := range left.notifications {
		if mine, some := s.broker.PassOn(ctx, b, func(t string) bool { return takes(types, t) }); some {
			own = append(own, mine)
		}
	}
	left.notifications = own
	s.hand(ctx, due, left)
}

// takes tells whether who names some types may have jobs of a type.
func takes(types []string, typ string) bool {
	if strings.IndexByte(typ, '@') < 0 {
		return slices.Contains(types, typ)
	}
	n := job.ParseNeeds(typ, "")
	return n.MetBy(types)
}

// seen returns what a run sees that began.
func (s *Store) seen(ctx context.Context, reply any, id job.ID, b store.Begin) (*store.Snapshot, error) {
	var d decoder
	snap, err := s.snapshot(&d, reply, id, b.Token, b.Row)
	if err != nil {
		return nil, err
	}
	if err := s.secrets.showSnapshot(snap); err != nil {
		return nil, s.park(ctx, snap, err)
	}
	return snap, nil
}

// beginArgs encodes what line.beginning() in run.lua reads: how a run is to begin, of a job or, with choose, of a ready one of some types.
func beginArgs(args []any, b store.Begin, choose bool, types []string, shards int) []any {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %d ", mutation.Lease(b.Lease).Milliseconds(), b.Batch)
	pairsText(&text, b.Batches)
	fmt.Fprintf(&text, "\x1e%d %d ", b.Bytes, b.Row)
	pairsText(&text, b.Limits)
	text.WriteString("\x1e" + placesArg(b.Running, shards))
	if choose {
		text.WriteString("\x1e" + marksOf(b, types) + "\x1e")
		if b.Lowest {
			text.WriteString("lowest")
		} else if b.Priority != nil {
			text.WriteString(strconv.Itoa(*b.Priority))
		} else if b.AtLeast > 0 {
			text.WriteString(strconv.Itoa(b.AtLeast) + "+")
		}
		text.WriteString("\x1e" + strings.Join(types, "\x1f"))
	}
	return append(args, b.Token, text.String())
}

// pairsText writes names with numbers, always in the same order: a server keeps what it has read of a text.
func pairsText(text *strings.Builder, of map[string]int) {
	for i, name := range slices.Sorted(maps.Keys(of)) {
		if i > 0 {
			text.WriteByte('\x1f')
		}
		text.WriteString(name + "=" + strconv.Itoa(of[name]))
	}
}

// marksOf are the marks of types that line.beginning() in run.lua reads.
func marksOf(b store.Begin, types []string) string {
	if b.Hold == nil && b.Several == nil {
		return ""
	}
	all := make([]byte, len(types))
	for i, typ := range types {
		all[i] = '0'
		if b.Hold != nil && b.Hold(typ) {
			all[i]++
		}
		if b.Several != nil {
			all[i] += 2 * byte(min(b.Several(typ), store.MostSeveral))
		}
	}
	return string(all)
}

// followArgs encodes what line.following() in run.lua reads: how a run of one of the types is to begin
// behind a call, if b is not nil.
func followArgs(args []any, b *store.Begin, types []string, shards int) []any {
	how := "1"
	switch {
	case b == nil:
		return append(args, "0")
	case b.Fair:
		how = "2"
	case b.Own:
		how = "3"
	}
	return beginArgs(append(args, how), *b, true, types, shards)
}

// Refresh implements store.Runs.
func (s *Store) Refresh(ctx context.Context, id job.ID, token string, lease time.Duration, far *job.Progress) error {
	return s.refresh(ctx, id, token, lease, far, false)
}

// Lend gives a run to somebody for a time, as Refresh does. If he has not ended it by then that is no crash: the job is ready at once, however
// often that happens, and [job.Info].Lapses counts it.
func (s *Store) Lend(ctx context.Context, id job.ID, token string, lease time.Duration) error {
	err := s.refresh(ctx, id, token, lease, nil, true)
	if now, nerr := s.Now(ctx); err == nil && nerr == nil {
		s.broker.Due(ctx, id.Shard(s.keys.shards), now.Add(lease).UnixMilli()) // which may be before they look the next time
	}
	return err
}

func (s *Store) refresh(ctx context.Context, id job.ID, token string, lease time.Duration, far *job.Progress, lent bool) error {
	hidden, err := s.secrets.hideProgress(id, far)
	if err != nil {
		return err
	}
	reply, err := s.run(ctx, scriptRefresh, s.keys.dueOf(id), string(id), token, mutation.Lease(lease).Milliseconds(), progressArg(hidden), flag(lent))
	if err != nil {
		return err
	}
	var d decoder
	if held := d.int(reply); d.err != nil || held == 1 {
		return d.err
	}
	return refusal("fenced", id)
}

// deliver sends the notifications of the reply to a client's call, and does what else the script
// left to do, to its end. What cannot be done now is in `due`, where the sweeper finds it: the
// script's changes hold anyway.
func (s *Store) deliver(ctx context.Context, due string, d *decoder, reply any) error {
	left := d.todo(reply, s.keys.shardAt(due))
	if d.err != nil {
		return d.err
	}
	s.finish(ctx, due, left)
	return nil
}

// finish does what scripts left to do in a shard.
func (s *Store) finish(ctx context.Context, due string, left todo) {
	all := len(left.members)
	left.members = slices.DeleteFunc(left.members, func(m string) bool { return m == backgroundTasksMember })
	s.hand(ctx, due, left)
	if len(left.members) < all {
		_ = s.backgroundTasks(ctx, due)
	}
}

// hand is deliver for those that others wait for: what may take long goes on in the background.
func (s *Store) hand(ctx context.Context, due string, left todo) {
	_ = s.urgent(ctx, due, left.members)
	if len(left.notifications) > 0 {
		_ = s.broker.Ring(ctx, left.notifications)
	}
}

// txArgs encodes a transaction as transaction() in delta.lua reads it.
func txArgs(args []any, tx store.Tx) []any {
	args = append(args, len(tx.Deltas))
	for i := range tx.Deltas {
		args = deltaArgs(args, &tx.Deltas[i])
	}
	return args
}

// outcomeArgs returns how a run ends and, of a job that repeats, when it runs again, or -1, and how far it is then.
func outcomeArgs(d *store.Delta) (statemachine.Event, []any) {
	switch {
	case d.Repeat == nil:
		return d.Outcome, nil
	case d.Outcome == statemachine.Complete: // for the last time
		return statemachine.Reschedule, []any{-1, d.Repeat.Progress()}
	default:
		return d.Outcome, []any{max(d.Repeat.Scheduled.UnixMilli(), 0), d.Repeat.Progress()} // what is below zero would be the last time
	}
}

// deltaArgs encodes a delta as delta() in delta.lua reads it. What most deltas do not have is left out, part by part.
func deltaArgs(args []any, d *store.Delta) []any {
	outcome, repeats := outcomeArgs(d)
	args = append(args, string(d.Job), d.Token, string(outcome), markArg(d))
	if d.Delay == 0 && d.Next == "" && d.Lease == 0 && d.Reason == "" && d.Single == "" && d.Progress == nil {
		args = append(args, "")
	} else {
		args = append(args, "1", d.Delay.Milliseconds(), d.Next, d.Lease.Milliseconds(), d.Reason, d.Single, progressArg(d.Progress))
	}
	args = append(args, repeats...)
	target := func(id job.ID) string {
		if id == "" {
			id = d.Job
		}
		return string(id)
	}
	args = append(args, len(d.Takes))
	for _, t := range d.Takes {
		args = append(args, target(t.Job), dirArg(t.Dir), t.Port, strconv.FormatInt(t.Head, 10), t.N)
	}
	if len(d.Set)+len(d.Unset)+len(d.Spawns) == 0 {
		args = append(args, "")
	} else {
		args = changeArgs(append(args, "1"), d)
	}
	parts := d.Parts()
	args = append(args, len(parts))
	if to, ok := alike(parts); ok {
		args = packArgs(append(args, "1"), parts, to, target)
	} else {
		args = append(args, "")
		for i := range parts {
			args = partArgs(args, &parts[i], target)
		}
	}
	args = append(args, len(d.Closes))
	for _, p := range d.Closes {
		args = append(args, p)
	}
	if len(d.Defaults)+len(d.Wakes)+len(d.Spawns)+len(d.Looked)+len(d.Released)+len(d.Launches) == 0 &&
		d.SetPorts == nil && d.Failure == nil && d.Woken == 0 {
		return append(args, "")
	}
	return rareArgs(append(args, "1"), d, target)
}

// changeArgs encodes what a delta does to the state of its job, and which jobs it creates, as changes() in delta.lua reads it.
func changeArgs(args []any, d *store.Delta) []any {
	args = append(args, len(d.Set))
	for k, v := range d.Set {
		args = append(args, k, []byte(v))
	}
	args = append(args, len(d.Unset))
	for _, k := range d.Unset {
		args = append(args, k)
	}
	return spawnArgs(args, d)
}

// rareArgs encodes what few deltas have as rare() in delta.lua reads it.
func rareArgs(args []any, d *store.Delta, target func(job.ID) string) []any {
	args = append(args, len(d.Defaults))
	for _, v := range d.Defaults {
		args = append(args, target(v.Job), dirArg(v.Dir), v.Port, setArg(v.Value), []byte(v.Value))
	}
	if d.SetPorts == nil {
		args = append(args, -1)
	} else {
		args = portsArgs(args, d.SetPorts)
	}
	failure := ""
	if d.Failure != nil {
		raw, err := json.Marshal(d.Failure)
		if err == nil { // a Failure holds strings and numbers only
			failure = string(raw)
		}
	}
	args = append(args, failure, len(d.Wakes))
	for _, w := range d.Wakes {
		args = append(args, w.Milliseconds())
	}
	var aliases []any
	for _, sp := range d.Spawns {
		if sp.Alias != "" {
			aliases = append(aliases, string(d.Job.Nth(sp.Base)), sp.Alias)
		}
	}
	args = append(args, d.Woken, 2*len(d.Looked))
	for _, l := range d.Looked {
		args = append(args, l.Name, strconv.FormatInt(l.Woke, 10))
	}
	args = append(append(args, len(aliases)), aliases...)
	args = append(args, len(d.Released))
	for _, name := range d.Released {
		args = append(args, name)
	}
	return launchArgs(args, d.Job, d.Launches)
}

// spawnArgs appends the jobs that the run spawns.
func spawnArgs(args []any, d *store.Delta) []any {
	nodes := 0
	for _, sp := range d.Spawns {
		nodes += len(sp.Plan.Nodes)
	}
	args = append(args, nodes)
	for _, sp := range d.Spawns {
		for _, n := range planArgs(sp.Plan, d.Job.Tree(), sp.Base, d.Job, "job:"+string(d.Job), "") {
			args = append(args, n...)
		}
	}
	return args
}

// markArg encodes what kind of run a delta is of, and what the job needs from then on.
func markArg(d *store.Delta) string {
	if d.Needs == nil {
		return kindArg(d)
	}
	return fmt.Sprintf("6 %s %s %s", d.Needs, d.Needs.Written(), kindArg(d))
}

func kindArg(d *store.Delta) string {
	switch {
	case d.Handed:
		return "1"
	case d.Started:
		return "2"
	case d.Leads:
		return "4"
	case d.Idle:
		return "5"
	case d.Speculation == nil:
		return "0"
	}
	g, closed := d.Speculation, 0
	if g.Closed {
		closed = 1
	}
	return fmt.Sprintf("3 %d %d %s %d %d %d %s", g.Version, g.Touched, g.Port, g.Seen, closed, g.Limit, g.Last)
}

// progressArg encodes how far a job is; empty: it says nothing of that.
func progressArg(p *job.Progress) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d %d %s", p.Done, p.Total, p.Text)
}

// partArgs encodes what one run wrote and logged as parts() in delta.lua reads it.
func partArgs(args []any, p *store.Part, target func(job.ID) string) []any {
	args = append(args, len(p.Writes))
	for _, w := range p.Writes {
		args = append(args, target(w.Job), dirArg(w.Dir), w.Port, hashArg(w), flag(w.Unlogged))
		args = itemArgs(args, w.Items)
	}
	args = append(args, p.Entry, len(p.Log))
	for _, e := range p.Log {
		args = append(args, e)
	}
	return args
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// setArg tells a value from its absence.
func setArg(v json.RawMessage) string {
	if v == nil {
		return ""
	}
	return "1"
}

// portsArgs encodes ports as set_ports() in port.lua reads them.
func portsArgs(args []any, ports []port.Spec) []any {
	args = append(args, len(ports), subscriptions(ports))
	for i := range ports {
		p := &job.Port{Spec: ports[i]}
		args = append(args, portField(p.Dir, p.Name), descriptor(p, nil), []byte(p.Default))
	}
	return args
}

func dirArg(d port.Dir) string { return string(byte(d)) }

func hashArg(w store.Write) string {
	if !w.Keyed {
		return ""
	}
	return strconv.FormatUint(uint64(w.Key), 10)
}

func itemArgs(args []any, items []json.RawMessage) []any {
	args = append(args, len(items))
	for _, m := range items {
		args = append(args, []byte(m))
	}
	return args
}

// renew gives notifications that asynq holds, but no server will hear any more, a new generation.
func (s *Store) renew(ctx context.Context, held []delivery.Notification) error {
	waiting, err := s.broker.Waiting(ctx, held)
	if err != nil {
		return err
	}
	var first error
	for i, b := range held {
		if waiting[i] {
			continue
		}
		due := s.keys.due(b.Shard)
		reply, err := s.run(ctx, scriptRenew, due, b.Queue, b.Gen)
		var d decoder
		if err == nil {
			err = s.deliver(ctx, due, &d, reply)
		}
		first = cmp.Or(first, err)
	}
	return first
}
