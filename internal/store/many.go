package store

import (
	"context"

	"github.com/weirworks/weir/job"
)

// Creation is a tree that a store is to create.
type Creation struct {
	ID   job.ID
	Plan *job.Plan
	By   string
}

// Posting is what a store is to write.
type Posting struct {
	Job   job.ID
	Write Write
}

// Bulk does for several what other contracts do for one, in one round trip as far as it fits; each by itself, so that some may fail.
type Bulk interface {
	// OnceMany is Names' Once: ids are those that the keys get, and are changed to those that they have.
	OnceMany(ctx context.Context, keys []string, ids []job.ID) []error
	// ClaimMany is Names' Claim: ids are those that the aliases get, and are changed to those that they have.
	ClaimMany(ctx context.Context, aliases []string, ids []job.ID) []error
	// CreateMany is Creator's Create, of trees.
	CreateMany(ctx context.Context, all []Creation) (created []bool, errs []error)
	// WriteMany is Ports' Write.
	WriteMany(ctx context.Context, all []Posting) []error
}
