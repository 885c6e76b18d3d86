//go:build !failpoints

package failpoint

import "time"

// Enabled tells whether the program has failpoints.
const Enabled = false

// Hit does here what the environment says of the point.
func Hit(Point) {}

// Fail does so, too, and returns an error if that is what is to happen.
func Fail(Point) error { return nil }

// Skew is by how much the clock of this process is wrong.
func Skew() time.Duration { return 0 }
