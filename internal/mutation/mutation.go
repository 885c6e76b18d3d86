// Package mutation breaks Weir on purpose, so that it can be seen whether the fault-injection harness
// notices. In a program built without the tag `mutation` nothing of it is left. With the tag,
// the environment variable WEIR_MUTATION names what is broken; empty, nothing is.
package mutation

// Name is a way in which Weir is broken.
type Name string

// All ways.
const (
	NoFence          Name = "no-fence"          // a commit does not check its token
	DoubleApply      Name = "double-apply"      // a commit that is sent again is applied again
	LostWake         Name = "lost-wake"         // a woken job is not in `due`: only who woke it knows
	ClientClock      Name = "client-clock"      // leases end by the clock of the worker, which is wrong
	PopAtBegin       Name = "pop-at-begin"      // messages are removed when a run begins, not when it commits
	NoRecheck        Name = "no-recheck"        // input that arrives during a run does not queue the job again
	EarlyAck         Name = "early-ack"         // orders leave the outbox before they are carried out
	Resurrect        Name = "resurrect"         // data wakes terminated jobs
	LostNotification Name = "lost-notification" // who makes a job ready does not ring: only the sweeper does
	PopNoDue         Name = "pop-no-due"        // a run that has begun is not in `due`: nobody misses it
	NoGuard          Name = "no-guard"          // scripts run while their slot moves to another server of a cluster
)

// All lists the ways.
var All = []Name{NoFence, DoubleApply, LostWake, ClientClock, PopAtBegin, NoRecheck, EarlyAck, Resurrect, LostNotification, PopNoDue, NoGuard}
