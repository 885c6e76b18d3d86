package job

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// MaxKey is how many bytes a key has at most: of SequentialKey, of Unique, and of Key.
const MaxKey = 128

// SequentialKey gives the tree a key of its namespace. Of the trees with one key, of whatever types and queues, one is active at
// a time, in the order in which they were created: the others are Waiting, and neither their priority nor their time lets them
// overtake. A tree holds its key until its root has completed, failed or been terminated, or is deleted; the next one is ready in the
// same step. So a root that is suspended, or scheduled for another try, still holds its key.
//
// A root that was over and is to run again, as somebody retries it or writes to it, needs its key anew: if another tree holds
// it by then, the root waits, before all trees that were created after it.
//
// A key is a text of 1 to MaxKey bytes without control characters. Only a root can have one: a child, which its parent
// may wait for, cannot. The ID of the tree tells where the trees of its key lie, so with WithID the tree gets an ID that follows from
// that ID and the key.
func SequentialKey(key string) Option {
	return option(func(o *Choices) { o.sequential = &key })
}

// CheckSequentialKey returns an error that wraps ErrName unless a key can be one of SequentialKey.
func CheckSequentialKey(key string) error {
	return checkKeyText("sequential", key)
}

// Turn is the place of a tree among those with its sequential key.
type Turn struct {
	Key    string `json:"key"`
	Holder ID     `json:"holder,omitempty"` // the root that holds the key; empty if none does
	Before int64  `json:"before"`           // how many trees of the key have to end before this one: 0 unless it waits
	Behind int64  `json:"behind"`           // how many wait behind it
}

// InShardOf returns an ID of a root that lies in the shard of a key: this one, or one that follows from it and has its time.
// It is for stores.
func (id ID) InShardOf(key string, shards int) ID {
	want := int(Hash(key) % uint32(shards))
	for n, from := 0, id; id.Shard(shards) != want; n++ {
		u, err := uuid.Parse(string(from))
		if err != nil {
			return from // which nothing can be created under
		}
		sum := sha256.Sum256([]byte(string(from) + " " + strconv.Itoa(n)))
		copy(u[8:], sum[:])
		u[8] = u[8]&0x3f | 0x80 // of RFC 9562
		id = ID(u.String())
	}
	return id
}

// sequence puts a sequential key into a plan, of a child if it is one.
func (o *Choices) sequence(plan *Plan, child bool) (*Plan, error) {
	if o.sequential != nil {
		if err := CheckSequentialKey(*o.sequential); err != nil {
			return nil, err
		}
		changed := *plan
		plan, changed.SequentialKey = &changed, *o.sequential
	}
	if child && plan.SequentialKey != "" {
		return nil, errKeyedChild(plan.SequentialKey)
	}
	return plan, nil
}

func errKeyedChild(key string) error {
	return fmt.Errorf("%w: a child cannot have the sequential key %.80q: start it as a tree of its own, or give the key to its root", ErrValue, key)
}
