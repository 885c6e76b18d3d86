package statemachine

// Status is where a job is in its life. Its value is what the stores keep.
type Status string

// The statuses; [Status.Doc] says what each one means. New is the status of a
// job that does not exist yet: it is never stored.
const (
	New         Status = ""
	Queued      Status = "queued"
	Scheduled   Status = "scheduled"
	Waiting     Status = "waiting"
	Running     Status = "running"
	Suspended   Status = "suspended"
	Completed   Status = "completed"
	Failed      Status = "failed"
	Terminating Status = "terminating"
	Terminated  Status = "terminated"
)

// kind says what to expect of a job that is left alone.
type kind string

const (
	uncreated kind = "not stored"
	active    kind = "active"
	idle      kind = "idle"
	settled   kind = "settled"
	final     kind = "final"
)

// fact is all there is to know about a status besides its transitions.
type fact struct {
	status Status
	kind   kind
	doc    string
}

// facts holds New and then the stored statuses in the order of a job's life.
var facts = []fact{
	{New, uncreated, "The job does not exist yet."},
	{Queued, active, "Ready to run: the next free worker takes it."},
	{Scheduled, active, "Becomes queued when its time comes: a delayed start or the pause before another try."},
	{Waiting, active, "Becomes queued when the job holding the same key lets go of it."},
	{Running, active, "A worker holds its lease and executes it."},
	{Suspended, idle, "Suspended until data arrives: it has read all there is, and its input is still open."},
	{Completed, settled, "The work succeeded; new data or a caller can start it again."},
	{Failed, idle, "The work failed and no tries are left; only a caller can start it again."},
	{Terminating, active, "Asked to stop; what it holds is being released."},
	{Terminated, final, "Stopped for good; only force revives it."},
}

// lookup returns the zero fact for a status that does not exist.
func (s Status) lookup() fact {
	for _, f := range facts {
		if f.status == s {
			return f
		}
	}
	return fact{}
}

// String returns the stored value, which is empty for [New].
func (s Status) String() string { return string(s) }

// Doc returns one sentence on what the status means, or nothing for a status
// that does not exist.
func (s Status) Doc() string { return s.lookup().doc }

// Settled reports whether the job came to a good end: completed or
// terminated. A failed job is not settled: it awaits somebody's decision.
func (s Status) Settled() bool {
	k := s.lookup().kind
	return k == settled || k == final
}

// Final reports whether the job was stopped for good: terminated.
func (s Status) Final() bool { return s.lookup().kind == final }

// Active reports whether something will happen to the job by itself, without
// new data or a caller: queued, scheduled, waiting, running or terminating.
func (s Status) Active() bool { return s.lookup().kind == active }

// label is the status as people read it.
func (s Status) label() string {
	if s == New {
		return "new"
	}
	return string(s)
}
