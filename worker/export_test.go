package worker

import "time"

// ShortRun sets how long runs may take that fuse.
func ShortRun(d time.Duration) { shortRun = d }
