package worker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// reader is any worker type.
type reader struct{ own Options }

func (*reader) TypeName() string                { return "reader" }
func (*reader) Run(context.Context, *Run) error { return nil }
func (g *reader) WorkerOptions() Options        { return g.own }

// ate is a commit of runs that read so many of the messages that came with their snapshot.
func ate(read, sent int) *ran {
	left := make([]json.RawMessage, sent-read)
	one := &ran{read: read, run: &Run{}, snap: &store.Snapshot{Info: job.Info{Type: "reader"}}, sum: &store.Delta{}}
	one.run.ins.all = []*inbox{{sent: sent, left: len(left), items: left}}
	return one
}

// One short batch, as of a job that found a port nearly full, does not make the next snapshots short; many do. Where each run
// has a commit of its own what it read says at once what the next one will.
func TestPrefetchSize(t *testing.T) {
	for _, each := range []bool{false, true} {
		r, err := newRegistry([]Worker{&reader{own: Options{CommitEachRun: each}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		size := func() int { return int(r.kind("reader").prefetch.Load()) }
		r.learn(ate(40, 500))
		long := size()
		r.learn(ate(1, long))
		if short := size(); each && short != 3 || !each && (short < 40 || short >= long) {
			t.Errorf("CommitEachRun %v: %d messages behind one that read 1 of %d", each, short, long)
		}
		for range 60 {
			r.learn(ate(1, size()))
		}
		if n := size(); n > 3 {
			t.Errorf("CommitEachRun %v: %d messages, though each reads one", each, n)
		}
		r.learn(ate(40, 41))
		if n := size(); n < 40 || n > 81 {
			t.Errorf("CommitEachRun %v: %d messages behind one that read 40", each, n)
		}
	}
}
