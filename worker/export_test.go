package worker

import "time"

// StrayDelay sets when a job is run again beside messages that its version does not read.
func StrayDelay(d time.Duration) { strayDelay = d }

// ShortRun sets how long runs may take that fuse.
func ShortRun(d time.Duration) { shortRun = d }
