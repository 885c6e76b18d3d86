package job

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// IDLength is how many characters the ID of a tree has: it is a UUID.
const IDLength = 36

// ID names one job for good. The root of a tree has a UUIDv7 as its ID, every other
// job of the tree has that UUID followed by a dot and its number in the tree, so the
// tree (and with it the place of all its data) follows from the ID alone.
type ID string

// NewID returns the ID of a new tree's root.
func NewID() (ID, error) {
	u, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("making a job ID: %w", err)
	}
	return ID(u.String()), nil
}

// ParseID checks that s is a whole job ID. The error wraps ErrID.
func ParseID(s string) (ID, error) {
	tree, num, dotted := strings.Cut(s, ".")
	if u, err := uuid.Parse(tree); err != nil || u.String() != tree {
		return "", fmt.Errorf("%w: %.80q does not begin with a UUID in lower case", ErrID, s)
	}
	if dotted {
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 || strconv.Itoa(n) != num {
			return "", fmt.Errorf("%w: %.80q must end with the number of the job in its tree, like %s.1", ErrID, s, tree)
		}
	}
	return ID(s), nil
}

// Missing is the error that there is no job of an ID: it wraps ErrNotFound, and ErrID, too, if no job can have it.
func (id ID) Missing() error {
	if _, err := ParseID(string(id)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return fmt.Errorf("%w: %s", ErrNotFound, id)
}

// Tree returns the ID of the root of the job's tree.
func (id ID) Tree() ID {
	tree, _, _ := strings.Cut(string(id), ".")
	return ID(tree)
}

// IsRoot tells whether the job is the root of its tree.
func (id ID) IsRoot() bool { return !strings.Contains(string(id), ".") }

// Number returns the number of the job in its tree; the root has 0.
func (id ID) Number() int {
	_, num, _ := strings.Cut(string(id), ".")
	n, _ := strconv.Atoi(num) // a root has no number: 0 is right
	return n
}

// Time is when the ID of the tree was made, to the millisecond, by the clock of who made it.
func (id ID) Time() time.Time {
	u, err := uuid.Parse(string(id.Tree()))
	if err != nil {
		return time.Time{}
	}
	var ms int64
	for _, b := range u[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

// Compare is negative if the job's tree is older than the other's, or its number in the same
// tree is the lower one.
func (id ID) Compare(other ID) int {
	if len(id) >= IDLength && len(other) >= IDLength && id[:IDLength] == other[:IDLength] {
		return cmp.Compare(id.Number(), other.Number())
	}
	return strings.Compare(string(id), string(other))
}

// Nth returns the ID of the n-th job of the tree that id belongs to; 0 is the root.
func (id ID) Nth(n int) ID {
	if n == 0 {
		return id.Tree()
	}
	return id.Tree() + ID("."+strconv.Itoa(n))
}

// Shard returns the shard, in [0, shards), in which all data of the job's tree lies.
// The hash is FNV-1a (32 bit) of the tree's ID.
func (id ID) Shard(shards int) int {
	return int(Hash(string(id.Tree())) % uint32(shards))
}

// Hash is FNV-1a (32 bit): the one hash that places trees on shards and keyed
// messages on consumers.
func Hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// IDAt returns an ID for the root of a tree that is made once for what has that name and happens at that time: the same
// for the same time, to the millisecond, and name. The name must say what no other tree has, such as the ID of a job and
// what it does.
func IDAt(at time.Time, name string) ID {
	sum := sha256.Sum256([]byte(name))
	var u uuid.UUID
	copy(u[6:], sum[:])
	ms := at.UnixMilli()
	for i := range 6 {
		u[5-i] = byte(ms >> (8 * i))
	}
	u[6] = u[6]&0x0f | 0x70 // version 7
	u[8] = u[8]&0x3f | 0x80 // of RFC 9562
	return ID(u.String())
}
