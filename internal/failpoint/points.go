// Package failpoint lets tests end, delay or fail a program at the points where that hurts
// most: before and after each durable step. In a program built without the tag
// `failpoints` Hit and Fail are empty and cost nothing, and no clock is wrong.
//
// With the tag, the environment says what happens where:
//
//	WEIR_FAILPOINTS=afterBegin:kill:3,midUser:sleep=200ms:1/50
//
// is a list of point:action:when. The action is kill (SIGKILL to the own process),
// sleep=<duration>, panic, or fail (of Fail: an error instead of the answer). It happens at
// the hit of that number, or, as 1/n, at each hit with that probability, by random numbers
// from WEIR_FAILPOINTS_SEED. WEIR_FAILPOINTS_COUNTS names a file in which any number of
// processes count together, see Counters. WEIR_FAILPOINTS_SKEW=-30m makes the clock of the process
// wrong by that much, in the eyes of what is built to ask Skew.
package failpoint

// Point is a place in the program.
type Point string

// All points.
const (
	BeforeDequeue           Point = "beforeDequeue"           // asynq is about to be asked for a wake
	AfterDequeueBeforeBegin Point = "afterDequeueBeforeBegin" // a wake was taken, its job knows nothing of it
	AfterBegin              Point = "afterBegin"              // the job has a run and a lease
	BeforeUser              Point = "beforeUser"              // the worker's code is about to run
	MidUser                 Point = "midUser"                 // for workers of tests: in the middle of their code
	AfterUserBeforeCommit   Point = "afterUserBeforeCommit"   // the run is over, nothing of it is stored
	MidChain                Point = "midChain"                // a speculative run is over, its chain is not
	MidBatch                Point = "midBatch"                // several runs of a job are over that go into one commit
	CommitSentReplyLost     Point = "commitSentReplyLost"     // the commit is stored, nobody knows
	AfterCommitBeforeAck    Point = "afterCommitBeforeAck"    // asynq does not know yet that the wake is done
	AfterAck                Point = "afterAck"                // now it does
	MidSpawnChildren        Point = "midSpawnChildren"        // between parts of a large plan
	MidTerminate            Point = "midTerminate"            // between background tasks: long work in pieces
	MidExpire               Point = "midExpire"               // some of what is past its retention is removed, there is more
	MidDelete               Point = "midDelete"               // a subtree is marked for deletion, and still there
	MidAdopt                Point = "midAdopt"                // the child points at its parent-to-be, which does not list it
	AfterAdoptAccepted      Point = "afterAdoptAccepted"      // the parent lists it, which is not confirmed yet
	SweeperBeforeEnqueue    Point = "sweeperBeforeEnqueue"    // what was past due is put right, its wakes are not out
	SweeperAfterEnqueue     Point = "sweeperAfterEnqueue"     // now they are
	BeforeRelayApplied      Point = "beforeRelayApplied"      // orders were read from an outbox
	AfterRelayBeforeDone    Point = "afterRelayBeforeDone"    // they were carried out, and are still in the outbox
	BeforeWorkKitMove       Point = "beforeWorkKitMove"       // what is due of a schedule of WorkKit was read, and not moved
	AfterWorkKitMove        Point = "afterWorkKitMove"        // it is moved, its orders are in the outbox
)

// All lists the points: what is in no list is no point.
var All = []Point{
	BeforeDequeue, AfterDequeueBeforeBegin, AfterBegin, BeforeUser, MidUser, AfterUserBeforeCommit, MidChain,
	MidBatch, CommitSentReplyLost, AfterCommitBeforeAck, AfterAck, MidSpawnChildren, MidTerminate, MidExpire, MidDelete, MidAdopt,
	AfterAdoptAccepted, SweeperBeforeEnqueue, SweeperAfterEnqueue, BeforeRelayApplied, AfterRelayBeforeDone,
	BeforeWorkKitMove, AfterWorkKitMove,
}
