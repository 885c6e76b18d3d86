package job

import "github.com/weirworks/weir/statemachine"

// Status is where a job is in its life. Its texts are what the store keeps, and what is shown.
type Status = statemachine.Status

// The statuses of jobs; docs/state_machine.md says what leads from one to another.
const (
	Queued      = statemachine.Queued      // ready to run
	Scheduled   = statemachine.Scheduled   // to run at a time: a delayed start, or the pause before another try
	Waiting     = statemachine.Waiting     // for another job that holds the same key
	Running     = statemachine.Running     // a worker executes it
	Suspended   = statemachine.Suspended   // until a message, a child, a timer or somebody wakes it
	Completed   = statemachine.Completed   // its work succeeded
	Failed      = statemachine.Failed      // its work failed, and no tries are left
	Terminating = statemachine.Terminating // asked to end
	Terminated  = statemachine.Terminated  // ended for good
)
