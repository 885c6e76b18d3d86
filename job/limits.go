package job

import "time"

// Limits of a tree that a run launches: it waits in an outbox as one entry, and one script creates it.
const (
	MaxLaunchJobs  = 200       // jobs of its plan
	MaxLaunchPorts = 2_000     // ports and edge ends of all of them
	MaxLaunch      = 256 << 10 // bytes of their names, arguments, defaults and messages
)

// OnceFor is how long a key of WriteOnce, Start or Create is known, at least.
const OnceFor = time.Hour

// MaxWoken is how many children a run is told of at a time that woke its job.
const MaxWoken = 1000

// MaxReleased is how many children a run releases in one commit at most.
const MaxReleased = 1000

// MaxReason is how many bytes the reason of a failure by hand has at most.
const MaxReason = 4096
