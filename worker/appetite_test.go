package worker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/weirworks/weir/job"
)

// glutton is any worker type.
type glutton struct{ own Options }

func (*glutton) TypeName() string                { return "glutton" }
func (*glutton) Run(context.Context, *Run) error { return nil }
func (g *glutton) WorkerOptions() Options        { return g.own }

// ate is a commit of runs that read so many of the messages that came with their snapshot.
func ate(read, sent int) *ran {
	left := make([]json.RawMessage, sent-read)
	one := &ran{read: read, run: &Run{}, snap: &job.Snapshot{Info: job.Info{Type: "glutton"}}, sum: &job.Delta{}}
	one.run.ins.all = []*inbox{{sent: sent, left: len(left), items: left}}
	return one
}

// One short batch, as of a job that found a port nearly full, does not make the next snapshots short; many do. Where each run
// has a commit of its own what it read says at once what the next one will.
func TestAppetite(t *testing.T) {
	for _, each := range []bool{false, true} {
		r, err := newRegistry([]Worker{&glutton{own: Options{CommitEachRun: each}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		appetite := func() int { return int(r.kind("glutton").prefetch.Load()) }
		r.learn(ate(40, 500))
		long := appetite()
		r.learn(ate(1, long))
		if short := appetite(); each && short != 3 || !each && (short < 40 || short >= long) {
			t.Errorf("CommitEachRun %v: %d messages behind one that read 1 of %d", each, short, long)
		}
		for range 60 {
			r.learn(ate(1, appetite()))
		}
		if n := appetite(); n > 3 {
			t.Errorf("CommitEachRun %v: %d messages, though each reads one", each, n)
		}
		r.learn(ate(40, 41))
		if n := appetite(); n < 40 || n > 81 {
			t.Errorf("CommitEachRun %v: %d messages behind one that read 40", each, n)
		}
	}
}
