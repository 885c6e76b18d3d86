package job

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
)

// MaxUniqueFor is the longest window of a unique key.
const MaxUniqueFor = 10 * 366 * 24 * time.Hour

// UniqueBy says which trees are the same work, see the function Unique. Its zero value: those of one type with the same args, until
// the first of them has settled.
type UniqueBy struct {
	// Key is what trees that are the same work have in common: 1 to MaxKey bytes without control characters. It belongs to the
	// namespace, so trees of different types share it. Empty means UniqueKey of type and args; of a graph, of its name and definition.
	Key string `json:"key,omitempty"`
	// For is a window of time: a tree is returned that was created at most so long ago, whether it has settled or not. It is
	// rounded up to milliseconds. Zero means until done: a tree is returned that has not settled.
	For time.Duration `json:"for,omitempty"`
	// Merge has the args of a duplicate merged into those of the job that is there, as RFC 7396 (JSON Merge Patch) says: members of
	// objects are added and replaced, and null removes one. It needs a Key, as without one the args are the same. A job that has begun
	// its first run, or that of its present repetition, keeps its args, as does one of another type or of a graph.
	Merge bool `json:"merge,omitempty"`
}

// Unique starts a tree unless one with the same unique key is there: then that one is returned, and Created is false. Of any number of
// callers one creates the tree, and whoever dies on the way leaves either nothing or the whole tree.
//
// Each caller says by its own For which trees it looks for; only the one that was created last under the key is looked at. A tree
// has settled when its root has completed, failed or been terminated. One that then comes to life again, as somebody retries it or
// writes to it, is found again, unless another one was created meanwhile: then both run. A tree that was deleted is not found.
// With For the tree is kept until the window is over, however short its retention is.
//
// A key tells apart only trees with the same SequentialKey, or none: it does not know trees that have another one. Only a root can
// have a unique key, and it goes without Alias, which also says which tree there is. With WithID the tree gets an ID that follows
// from that ID and the key, as it does with SequentialKey.
func Unique(by UniqueBy) Option { return option(func(o *Choices) { o.unique = &by }) }

// UniqueKey returns the unique key of a job by its type and args: the SHA-1, in hexadecimal digits, of the JSON
// {"args":ARGS,"type":TYPE}, of which the keys are sorted, numbers are as they are written, and there are no blanks. Args are any
// value that encodes to JSON; nil is {}.
func UniqueKey(typ string, args any) (string, error) {
	if raw, ok := args.(json.RawMessage); args == nil || ok && len(raw) == 0 {
		args = struct{}{}
	}
	return hashKey(map[string]any{"args": args, "type": typ})
}

func hashKey(v any) (string, error) {
	raw, err := port.Canonical(v)
	if err != nil {
		return "", fmt.Errorf("unique key: %w", err)
	}
	sum := sha1.Sum(raw) //nolint:gosec // as above
	return hex.EncodeToString(sum[:]), nil
}

// Validate returns an error that wraps ErrName or ErrValue unless the key, if there is one, and the window can be those of a tree.
func (u UniqueBy) Validate() error {
	if u.For != 0 && (u.For < time.Millisecond || u.For > MaxUniqueFor) {
		return fmt.Errorf("%w: a unique key for %s: use 1ms to %d days, or 0 for until the job is done", ErrValue, u.For, MaxUniqueFor/(24*time.Hour))
	}
	if u.Key == "" {
		return nil
	}
	return checkKeyText("unique", u.Key)
}

// checkKeyText refuses what is no key that people read.
func checkKeyText(kind, key string) error {
	switch {
	case len(key) == 0 || len(key) > MaxKey:
		return fmt.Errorf("%w: %s key %.80q has %d bytes: use 1 to %d", ErrName, kind, key, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %s key %.80q is not valid UTF-8", ErrName, kind, key)
	case strings.ContainsFunc(key, unicode.IsControl):
		return fmt.Errorf("%w: %s key %.80q holds a control character", ErrName, kind, key)
	}
	return nil
}

// DuplicateError tells that a tree was not created, as another one has its unique key. It wraps ErrExists.
type DuplicateError struct {
	ID ID // of the root of the other one
}

// Error implements error.
func (e *DuplicateError) Error() string { return fmt.Sprintf("job %s has the same unique key", e.ID) }

// Unwrap returns ErrExists.
func (e *DuplicateError) Unwrap() error { return ErrExists }

// distinguish puts a unique key into a plan, of a child if it is one.
func (o *Choices) distinguish(plan *Plan, child bool) (*Plan, error) {
	if o.unique != nil {
		changed := *plan
		plan, changed.Unique = &changed, o.unique
	}
	if plan.Unique != nil && o.Aliased {
		return nil, fmt.Errorf("%w: a unique key and the alias %.80q both say which tree is there: use one of them", ErrValue, o.Alias)
	}
	if child && plan.Unique != nil {
		return nil, errUniqueChild()
	}
	return plan.distinct()
}

func errUniqueChild() error {
	return fmt.Errorf("%w: a child cannot have a unique key: its name is unique below its parent; start it as a tree of its own, or give the key to its root", ErrValue)
}

// distinct returns the plan with its unique key, if it is to have the one of its type and args.
func (p *Plan) distinct() (*Plan, error) {
	if p.Unique == nil || len(p.Nodes) == 0 {
		return p, nil
	}
	if p.Unique.Merge && (p.Unique.Key == "" || p.Nodes[0].Graph) {
		return nil, fmt.Errorf("%w: args are merged into those of a job with the same unique key, which must be given as a text; a graph has none", ErrValue)
	}
	if p.Unique.Key != "" {
		return p, nil
	}
	root, by := &p.Nodes[0], *p.Unique
	var err error
	if root.Graph {
		by.Key, err = hashKey(map[string]any{"definition": p.Digest(), "type": root.Type})
	} else {
		by.Key, err = UniqueKey(root.Type, root.Args)
	}
	if err != nil {
		return nil, err
	}
	changed := *p
	changed.Unique = &by
	return &changed, nil
}

// Home is the key that says in which shard the tree of a plan lies, as the shards of keys are; empty: its ID does.
func (p *Plan) Home() string {
	if p.SequentialKey == "" && p.Unique != nil {
		return p.Unique.Key
	}
	return p.SequentialKey
}
