package redisstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// The commit that ends a repetition schedules the next one, once, however often it is sent; one of a run that lost its job
// changes nothing.
func TestB31Reschedule(t *testing.T) {
	each(t, func(e *env) {
		id := newID(t)
		r := job.RepeatRule{Schedule: "SCHEDULED, +1 HOUR", Zone: "Europe/Berlin"}
		repeats, err := r.Repeats(time.Now())
		e.Check(err)
		plan := &job.Plan{Nodes: []job.Node{{Type: "T", Ports: ports(in("in"), out("out"))}}, Repeat: repeats}
		_, err = e.store.Create(e.Context(), id, plan, "")
		e.Check(err)
		var before store.Delta
		for n, at := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
			snap := e.begin(id)
			d := delta(snap, statemachine.Reschedule)
			next, ok := snap.Info.Repeat.After(&snap.Info, snap.Info.Ran)
			if !ok {
				t.Fatal("no further time")
			}
			next.Scheduled = at.Truncate(time.Millisecond).UTC()
			d.Repeat = next
			d.Set = map[string]json.RawMessage{"n": json.RawMessage("1")}
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(3*n, 3*n+2)}}
			if n > 0 {
				e.unchanged("a commit of another run", func() { e.try(before) })
			}
			e.commit(d)
			e.unchanged("the same commit again", func() { e.commit(d) })
			i := e.info(id)
			if i.Repeat.Count != int64(n+1) || !i.Repeat.Scheduled.Equal(next.Scheduled) || i.Repeat.Schedule.String() != "repeat:SCHEDULED, +1 HOUR" {
				t.Errorf("%+v, want %+v", i.Repeat, next)
			}
			e.is([]statemachine.Status{statemachine.Queued, statemachine.Scheduled}[n], id)
			before = d
		}
		e.holds(id, port.Output, "out", "3", "4", "5")
		e.equal("total", e.port(id, port.Output, "out").Total, int64(6))
		e.equal("next", e.info(id).Next, e.info(id).Repeat.Scheduled)
		e.Check(e.store.Apply(e.Context(), id, statemachine.Terminate))
		e.end(id, statemachine.Shutdown)
		e.is(statemachine.Terminated, id)
		e.Check(e.store.Delete(e.Context(), id))
	})
}
