// Package localredis is what a store asks of a Redis that it starts itself, so that a program links one only if it says so: the one
// there is is in redisstore/embedded.
package localredis

import "time"

// Server is a Redis of one store, in the same process.
type Server interface {
	// URL is where it is, with its password.
	URL() string
	// Hold takes it off the machine's clock. Its own stands still at now, until Advance.
	Hold(now time.Time)
	// Advance moves the clock of a held one to now, by what has passed: keys whose time is over expire.
	Advance(now time.Time, passed time.Duration)
	// Close ends it and its connections, and waits for them. To be called once.
	Close()
}
