package store

import "github.com/weirworks/weir/job"

// Arrival is a payload of a journal that is to become the lone root job of a plan. See package journal.
type Arrival struct {
	ID       job.ID
	Position int64 // in its epoch; less than 2^53
	Plan     *job.Plan
	By       string
}
