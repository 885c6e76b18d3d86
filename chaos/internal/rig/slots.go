package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"

	"github.com/weirworks/weir/chaos/internal/crew"
)

const (
	// endsIn is how long a process that was told to end may take, at the worst.
	endsIn = 30 * time.Second
	// rebirth is the time from the end of a process to the start of the next in its slot.
	rebirth = 20 * time.Millisecond
)

// slot is a place in which there is always a worker, another one when it dies.
type slot struct {
	number int
	steady bool // its workers are seldom killed: they live long enough to come back from the dead

	mu  sync.Mutex
	now *process
}

func (s *slot) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *slot) set(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
}

// kill ends the process that is there.
func (s *slot) kill() {
	if p := s.process(); p != nil {
		p.tell(syscall.SIGKILL)
	}
}

// watch measures what comes after faults.
type watch struct {
	recovery, resume, release stopwatch

	mu    sync.Mutex
	died  map[job.ID]crash
	froze map[job.ID]*process // in the middle of a run of the job
	ready time.Time           // since when the Redis is back, and no run was seen
}

// crash is that of a worker during a run of a job.
type crash struct {
	of *process
	at time.Time
}

func (w *watch) init() {
	w.died, w.froze = map[job.ID]crash{}, map[job.ID]*process{}
}

// freeze notes that a worker was stopped in the middle of a run.
func (w *watch) freeze(p *process, id job.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.froze[id] = p
}

// dead notes that a worker died suddenly.
func (w *watch) dead(p *process, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range p.atWork() {
		if _, known := w.died[id]; !known {
			w.died[id] = crash{p, at}
		}
	}
}

// began notes that a run began.
func (w *watch) began(p *process, id job.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.died[id]; ok && d.of != p {
		w.recovery.add(time.Since(d.at))
		delete(w.died, id)
	}
	if frozen := w.froze[id]; frozen != nil && frozen != p {
		delete(w.froze, id)
		frozen.resume() // and commits, while this run is running
	}
	if !w.ready.IsZero() && p.created.Before(w.ready) {
		w.resume.add(time.Since(w.ready))
		w.ready = time.Time{}
	}
}

// back notes that the Redis is there again.
func (w *watch) back() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = time.Now()
}

// crew starts all workers and actors. stop ends them and waits.
func (r *rig) crew(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for n := range r.Workers {
		s := &slot{number: n, steady: n < r.Workers/3}
		r.slots = append(r.slots, s)
		r.site.onReplaced(n, s.kill)
		wg.Go(func() { r.man(ctx, s) })
	}
	for n := range actors {
		a := &actor{rig: r, slot: r.Workers + n, orders: make(chan asked)}
		r.actors = append(r.actors, a)
		r.site.onReplaced(a.slot, a.at.kill)
		wg.Go(func() { a.serve(ctx) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// man keeps a worker in a slot until ctx ends.
func (r *rig) man(ctx context.Context, s *slot) {
	for ctx.Err() == nil {
		env := append(r.env(s.number), "WEIR_FAILPOINTS="+r.orders(s.steady), "WEIR_FAILPOINTS_SEED="+strconv.Itoa(r.intn(1<<30)))
		p, err := spawn(r.dir, crew.RoleWorker, env, func(p *process, id job.ID) {
			r.count(runs, 1)
			r.watch.began(p, id)
		}, r.freeze)
		if err != nil {
			r.bad(trouble, "%v", err)
			return
		}
		s.set(p)
		select {
		case <-p.gone:
		case <-ctx.Done():
			p.resume()
			r.dismiss(p)
		}
		r.ended(p)
		pause(ctx, rebirth)
	}
}

// freezeEvery is the least time from one freeze to the next.
const freezeEvery = 2 * time.Second

// freeze stops a process that asks for it in the middle of a run of a job, while there are faults,
// and not too often. It goes on when another run of the job has begun, or after a while.
func (r *rig) freeze(p *process, id job.ID) {
	r.mu.Lock()
	ripe := r.stormy && time.Since(r.froze) > freezeEvery
	if ripe {
		r.froze = time.Now()
	}
	r.mu.Unlock()
	if ripe && p.pause(4*r.Lease) {
		r.watch.freeze(p, id)
		r.fault("sigstop_mid_run")
	}
}

// dismiss tells a process to end and waits until it has.
func (r *rig) dismiss(p *process) {
	at := time.Now()
	p.tell(syscall.SIGTERM)
	select {
	case <-p.gone:
		r.watch.release.add(time.Since(at))
	case <-time.After(endsIn):
		p.signal(syscall.SIGABRT) // it writes what it is doing
		<-p.gone
		r.bad(hung, "a worker that was told to end did not in %s: %s", endsIn, p.file)
	}
}

// ended looks at how a worker has ended.
func (r *rig) ended(p *process) {
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	text, n := p.wrote()
	r.count(refused, n)
	switch {
	case text != "":
		r.bad(panics, "%s", text)
	case status.Signaled():
		r.watch.dead(p, time.Now())
		p.tidy()
	case p.farewell != nil && p.farewell.Leaked > 0:
		r.count(leakedRoutines, p.farewell.Leaked-1)
		r.bad(leakedRoutines, "%d goroutines are left of a worker that has ended: %s", p.farewell.Leaked, p.file)
	default:
		p.tidy()
	}
}

// orders draws what is to happen at the failpoints of a worker. What sleeps before a commit does
// so until the job has another run.
func (r *rig) orders(steady bool) string {
	if !r.inStorm() {
		return ""
	}
	late, often := r.between(r.Lease, 2*r.Lease), 80
	if steady {
		late, often = r.between(2*r.Lease, 5*r.Lease), 20
	}
	list := []failpoint.Order{
		{Point: failpoint.AfterUserBeforeCommit, Action: failpoint.Sleep, Sleep: late, OneIn: often},
		{Point: failpoint.BeforeUser, Action: failpoint.Sleep, Sleep: late, OneIn: 1000},
		{Point: failpoint.MidUser, Action: failpoint.Panic, OneIn: 100},
		{Point: failpoint.CommitSentReplyLost, Action: failpoint.Fails, OneIn: 80},
	}
	if !steady && r.chance() < 0.85 {
		list = append(list, r.killer())
	}
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = o.String()
	}
	return strings.Join(texts, ",")
}

// rare points are not hit often.
var rare = map[failpoint.Point]bool{
	failpoint.SweeperBeforeEnqueue: true, failpoint.SweeperAfterEnqueue: true, failpoint.MidTerminate: true,
	failpoint.MidChain: true, failpoint.MidBatch: true, failpoint.BeforeRelayApplied: true, failpoint.AfterRelayBeforeDone: true,
}

// killer draws a point at which a worker kills itself, and when.
func (r *rig) killer() failpoint.Order {
	p := failpoint.All[r.intn(len(failpoint.All))]
	most := 12
	if rare[p] {
		most = 3
	}
	return failpoint.Order{Point: p, Action: failpoint.Kill, Nth: 1 + r.intn(most)}
}

// actor keeps a process that does what clients do, and gives it orders until they are done.
type actor struct {
	rig    *rig
	slot   int
	orders chan asked
	at     slot
}

type asked struct {
	order  crew.Order
	answer chan crew.Answer
}

// actorPoints are where actors kill themselves.
var actorPoints = []failpoint.Point{
	failpoint.MidSpawnChildren, failpoint.MidTerminate, failpoint.MidDelete, failpoint.MidAdopt, failpoint.AfterAdoptAccepted,
	failpoint.BeforeRelayApplied, failpoint.AfterRelayBeforeDone,
}

// serve does what is ordered until ctx ends.
func (a *actor) serve(ctx context.Context) {
	var p *process
	defer func() {
		if p != nil {
			_ = p.in.Close() // it ends with its input
			<-p.gone
			a.rig.ended(p)
		}
	}()
	for {
		var one asked
		select {
		case <-ctx.Done():
			return
		case one = <-a.orders:
		}
		for {
			if p == nil || !p.alive() {
				if p != nil {
					a.rig.ended(p)
				}
				p = a.start()
			}
			answer, err := a.ask(p, one.order)
			if err == nil {
				one.answer <- answer
				break
			}
			if !pause(ctx, rebirth) {
				one.answer <- crew.Answer{Error: err.Error()}
				return
			}
		}
	}
}

// start starts a process.
func (a *actor) start() *process {
	r := a.rig
	spec := ""
	if r.inStorm() && r.chance() < 0.6 {
		spec = failpoint.Order{Point: actorPoints[r.intn(len(actorPoints))], Action: failpoint.Kill, Nth: 1 + r.intn(2)}.String()
	}
	p, err := spawn(r.dir, crew.RoleActor, append(r.env(a.slot), "WEIR_FAILPOINTS="+spec), nil, nil)
	if err != nil {
		r.bad(trouble, "%v", err)
		return nil
	}
	a.at.set(p)
	return p
}

// errActorDied: its order is given to the next.
var errActorDied = errors.New("the actor died")

func (a *actor) ask(p *process, o crew.Order) (answer crew.Answer, err error) {
	if p == nil {
		return answer, errActorDied
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return answer, err
	}
	if _, err := p.in.Write(append(raw, '\n')); err != nil {
		<-p.gone
		return answer, errActorDied
	}
	line, ok := <-p.lines
	if !ok {
		<-p.gone
		return answer, errActorDied
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return answer, fmt.Errorf("what an actor said: %w", err)
	}
	return answer, nil
}

// act has an actor do something, again and again until it works or ctx ends.
func (r *rig) act(ctx context.Context, o crew.Order, done func(crew.Answer) bool) bool {
	for ctx.Err() == nil {
		one := asked{order: o, answer: make(chan crew.Answer, 1)}
		a := r.actors[r.intn(len(r.actors))]
		select {
		case <-ctx.Done():
			return false
		case a.orders <- one:
		}
		if done(<-one.answer) {
			return true
		}
		pause(ctx, 100*time.Millisecond)
	}
	return false
}
