package component

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// buffer keeps messages in the job's state, one key each, so that a run writes only what
// is new. Its head is kept under its name.
type buffer struct {
	run  *worker.Run
	name string
	head bufferHead
	old  bufferHead
}

// bufferHead numbers the messages of a buffer.
type bufferHead struct {
	First int `json:"first"` // number of the oldest
	Next  int `json:"next"`  // number of the next to come
	Bytes int `json:"bytes"` // of all
}

func openBuffer(run *worker.Run, name string) (*buffer, error) {
	b := &buffer{run: run, name: name}
	if _, err := run.State().Get(name, &b.head); err != nil {
		return nil, err
	}
	b.old = b.head
	return b, nil
}

func (b *buffer) len() int { return b.head.Next - b.head.First }

func (b *buffer) key(n int) string { return b.name + "." + strconv.Itoa(n) }

// push keeps a value behind the others.
func (b *buffer) push(v any) error {
	raw, err := port.Encode(v)
	if err != nil {
		return err
	}
	if err := b.run.State().Set(b.key(b.head.Next), raw); err != nil {
		return err
	}
	b.head.Next++
	b.head.Bytes += len(raw)
	return nil
}

// all returns what is kept, the oldest first.
func (b *buffer) all() ([]json.RawMessage, error) {
	keys := make([]string, 0, b.len())
	for n := b.head.First; n < b.head.Next; n++ {
		keys = append(keys, b.key(n))
	}
	if len(keys) == 0 {
		return nil, nil
	}
	found, err := b.run.State().GetMany(keys)
	if err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(keys))
	for i, key := range keys {
		if items[i] = found[key]; items[i] == nil {
			return nil, lost(key)
		}
	}
	return items, nil
}

// oldest decodes the oldest value into v.
func (b *buffer) oldest(v any) error {
	key := b.key(b.head.First)
	ok, err := b.run.State().Get(key, v)
	if err == nil && !ok {
		err = lost(key)
	}
	return err
}

// lost: the state has not what it must have.
func lost(key string) error { return fmt.Errorf("the state has lost %q: somebody removed it", key) }

// drop forgets the oldest: items are those that all returned of them.
func (b *buffer) drop(items []json.RawMessage) {
	for _, raw := range items {
		b.run.State().Unset(b.key(b.head.First))
		b.head.First++
		b.head.Bytes -= len(raw)
	}
}

// save writes the head, if it changed. It must be called before a commit.
func (b *buffer) save() error {
	if b.head == b.old {
		return nil
	}
	b.old = b.head
	return b.run.State().Set(b.name, b.head)
}

// table remembers what was read of the state in a run: a large state is read key by key.
type table struct {
	run   *worker.Run
	known map[string]json.RawMessage // nil value: not there
}

func newTable(run *worker.Run) *table {
	return &table{run: run, known: map[string]json.RawMessage{}}
}

// load reads keys that are not known yet, in one round trip.
func (t *table) load(keys ...string) error {
	var ask []string
	for _, k := range keys {
		if _, ok := t.known[k]; !ok {
			ask = append(ask, k)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	found, err := t.run.State().GetMany(ask)
	if err != nil {
		return err
	}
	for _, k := range ask {
		t.known[k] = found[k]
	}
	return nil
}

// get decodes the value of a key into v, if there is one.
func (t *table) get(key string, v any) (bool, error) {
	if err := t.load(key); err != nil {
		return false, err
	}
	raw := t.known[key]
	if raw == nil {
		return false, nil
	}
	return true, port.Decode(raw, v)
}

// set changes the value of a key and returns its size.
func (t *table) set(key string, v any) (int, error) {
	raw, err := port.Encode(v)
	if err != nil {
		return 0, err
	}
	t.known[key] = raw
	return len(raw), t.run.State().Set(key, raw)
}

func (t *table) unset(key string) {
	t.known[key] = nil
	t.run.State().Unset(key)
}
