//go:build !mutation

package mutation

import "time"

// Enabled tells whether the program can be broken.
const Enabled = false

// On tells whether Weir is broken in this way.
func On(Name) bool { return false }

// Script returns the text of a file of scripts, broken if it is to be.
func Script(_, text string) string { return text }

// Lease returns how long a lease is to be, by a clock that may be wrong.
func Lease(d time.Duration) time.Duration { return d }
