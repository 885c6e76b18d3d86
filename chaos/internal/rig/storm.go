package rig

import (
	"context"
	"math"
	"syscall"
	"time"
)

// faultKind is a kind of fault: its name, how many happen in a second, and what it does. It
// returns false if it could not happen now.
type faultKind struct {
	name string
	rate float64
	do   func(ctx context.Context) bool
}

// workerFaults are the kinds of faults that happen to processes of the crew.
var workerFaults = map[string]bool{
	"sigkill": true, "sigstop": true, "sigstop_mid_run": true, "sigterm": true, "sigterm_sigkill": true,
	"failpoint_kill": true, "failpoint_sleep": true, "failpoint_panic": true, "failpoint_fail": true,
}

// scripts are whose replies get lost.
var scripts = []string{"\r\ncommit\r\n", "\r\nstep\r\n", "\r\nbegin\r\n", "\r\nport_write\r\n", "\r\nmail_apply\r\n", "\r\ncreate\r\n", "\r\nstate_set\r\n", "\r\ndue_sweep\r\n", "evalsha"}

func (r *rig) kinds() []faultKind {
	return []faultKind{
		{"sigkill", 6, r.killOne},
		{"sigstop", 1.5, func(context.Context) bool {
			p := r.victim()
			return p != nil && p.pause(r.between(r.Lease/5, 2*r.Lease))
		}},
		{"sigterm", 2, func(context.Context) bool {
			p := r.victim()
			if p != nil {
				p.resume()
				go r.dismiss(p)
			}
			return p != nil
		}},
		{"sigterm_sigkill", 0.4, func(context.Context) bool { // killed while it drains
			p := r.victim()
			if p != nil {
				p.resume()
				p.tell(syscall.SIGTERM)
				time.AfterFunc(r.between(0, 30*time.Millisecond), func() { p.signal(syscall.SIGKILL) })
			}
			return p != nil
		}},
		{"toxic", 1, func(ctx context.Context) bool {
			return r.site.lines[r.intn(r.Workers+actors)].trouble(ctx, toxics[r.intn(len(toxics))], r.between(300*time.Millisecond, 1500*time.Millisecond))
		}},
		{"reply_lost", 2, func(context.Context) bool {
			r.site.drop.DropReplies(1, scripts[r.intn(len(scripts))])
			return true
		}},
		{"redis_kill", 0.12, func(context.Context) bool {
			restart(r.site.redis)
			r.watch.back()
			return true
		}},
		{"redis_pause", 0.08, func(ctx context.Context) bool {
			r.site.redis.Pause()
			pause(ctx, r.between(100*time.Millisecond, r.Lease))
			r.site.redis.Resume()
			return true
		}},
	}
}

// victim draws a worker that is there, seldom one of those that are to live long.
func (r *rig) victim() *process {
	for range 3 * len(r.slots) {
		s := r.slots[r.intn(len(r.slots))]
		if s.steady && r.chance() > 0.05 {
			continue
		}
		p := s.process()
		if p != nil && p.alive() && !(p.isStopped() && r.chance() < 0.95) { // that is fault enough
			return p
		}
	}
	return nil
}

func (r *rig) killOne(context.Context) bool {
	p := r.victim()
	if p != nil {
		p.tell(syscall.SIGKILL)
	}
	return p != nil
}

// storm lets faults happen until ctx ends: each kind at random times, but at its rate.
func (r *rig) storm(ctx context.Context, kinds []faultKind) {
	total := 0.0
	for _, k := range kinds {
		total += k.rate
	}
	next := time.Now()
	for {
		next = next.Add(time.Duration(-math.Log(1-r.chance()) / total * float64(time.Second)))
		at := r.chance() * total
		if !pause(ctx, time.Until(next)) {
			return
		}
		for _, k := range kinds {
			if at -= k.rate; at < 0 {
				if k.do(ctx) {
					r.fault(k.name)
				}
				break
			}
		}
	}
}

// calm ends all faults: the network is good, and all workers are new ones without failpoints.
func (r *rig) calm(ctx context.Context) {
	r.site.calm(ctx)
	for _, s := range r.slots {
		if p := s.process(); p != nil && p.alive() {
			p.resume()
			go r.dismiss(p)
		}
	}
}
