package statemachine

// Event is something that happens to a job and may change its [Status].
type Event string

// The events; [Event.Doc] says what each one means.
const (
	Create        Event = "create"
	CreateLater   Event = "create_later"
	CreateWaiting Event = "create_waiting"
	CreateIdle    Event = "create_idle"

	Due     Event = "due"
	KeyFree Event = "key_free"
	KeyHeld Event = "key_held"
	Begin   Event = "begin"

	Requeue  Event = "requeue"
	Suspend  Event = "suspend"
	Complete Event = "complete"
	Fail     Event = "fail"
	Backoff  Event = "backoff"
	Recover  Event = "recover"
	// Reschedule is not called repeat, which is a word of Lua.
	Reschedule Event = "reschedule"

	Wake  Event = "wake"
	Run   Event = "run"
	Retry Event = "retry"
	Force Event = "force"
	// RetryLater is Retry at a time.
	RetryLater Event = "retry_later"
	// GiveUp is not called fail, which is what becomes of a run.
	GiveUp Event = "give_up"

	Terminate Event = "terminate"
	Shutdown  Event = "shutdown"
)

// rule is one event: where it may happen and where it leads, which is the
// same status from everywhere.
type rule struct {
	event Event
	from  []Status
	to    Status
	doc   string
}

// rules is the state machine. Nothing else decides what may follow what.
var rules = []rule{
	{Create, []Status{New}, Queued, "The job is created ready to run."},
	{CreateLater, []Status{New}, Scheduled, "The job is created to run at a later time."},
	{CreateWaiting, []Status{New}, Waiting, "The job is created while another one holds its key."},
	{CreateIdle, []Status{New}, Suspended, "The job is created wired to an input that has nothing to read yet."},

	{Due, []Status{Scheduled}, Queued, "The time it was scheduled for has come."},
	{KeyFree, []Status{Waiting}, Queued, "The key it waits for is free."},
	{KeyHeld, []Status{Queued}, Waiting, "It was over and is to run again, but another job holds its key by now."},
	{Begin, []Status{Queued}, Running, "A worker takes it."},

	{Requeue, []Status{Running}, Queued, "Input arrived during the run, or the worker handed the run back."},
	{Suspend, []Status{Running}, Suspended, "The run read all there is and waits for more."},
	{Complete, []Status{Running}, Completed, "The run succeeded and nothing is left to read."},
	{Fail, []Status{Running}, Failed, "The run failed and no tries are left."},
	{Backoff, []Status{Running}, Scheduled, "The run failed and will be tried again after a pause."},
	{Reschedule, []Status{Running}, Scheduled, "The run succeeded, and the job repeats: it runs again at its next time."},
	{Recover, []Status{Running}, Queued, "The run lost its lease: its worker died or was cut off."},

	{Wake, []Status{Suspended, Completed}, Queued, "Data arrived on one of its inputs."},
	{Run, []Status{Scheduled, Suspended, Completed}, Queued, "A caller asks for a run now."},
	{Retry, []Status{Scheduled, Failed}, Queued, "A caller asks for another try after a failure, or for the next try now."},
	{RetryLater, []Status{Scheduled, Running, Failed}, Scheduled, "A caller asks for another try at a later time; a run in progress loses its job."},
	{
		GiveUp,
		[]Status{Queued, Scheduled, Waiting, Running, Suspended},
		Failed, "A caller declares the job failed, without another try; a run in progress loses its job.",
	},
	{
		Force,
		[]Status{Scheduled, Suspended, Completed, Failed, Terminated},
		Queued, "A caller insists on a run, even of a failed or terminated job.",
	},

	{
		Terminate,
		[]Status{Queued, Scheduled, Waiting, Running, Suspended, Completed, Failed},
		Terminating, "A caller asks the job to stop for good.",
	},
	{Shutdown, []Status{Terminating}, Terminated, "Everything it held has been released."},
}

// String returns the event's name.
func (e Event) String() string { return string(e) }

// Doc returns one sentence on when the event happens, or nothing for an event
// that does not exist.
func (e Event) Doc() string {
	for _, r := range rules {
		if r.event == e {
			return r.doc
		}
	}
	return ""
}
