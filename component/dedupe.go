package component

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// DefaultCapacity is how many keys Dedupe remembers unless told otherwise.
const DefaultCapacity = 100_000

// Dedupe passes on messages whose key it has not seen among the last capacity different
// keys.
//
// Order is kept, the result is the same however runs fall, and the end of in is the end
// of out. Each key that is remembered takes two small entries of the state.
type Dedupe struct {
	pure
	// Key is an expression over it. Empty means the whole message.
	Key string `json:"key,omitempty" doc:"expression over it, the message, that gives its key; default the whole message"`
	// Capacity is how many keys are remembered. Zero means DefaultCapacity.
	Capacity int `json:"capacity,omitempty" doc:"keys remembered, default 100000; the oldest is forgotten first"`
	// OnError is what becomes of messages for which key fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`
}

// JobType implements job.TypeNamer.
func (*Dedupe) JobType() string { return "dedupe" }

// Describe implements Component.
func (*Dedupe) Describe() string { return "passes on only the first message of each key" }

// Validate implements Component.
func (d *Dedupe) Validate() error {
	var c check
	c.expr("key", cmp.Or(d.Key, "it"), scopeItem, false)
	c.count("capacity", d.Capacity)
	c.onError(d.OnError)
	return c.err(d)
}

// keyed is a message with the name of its key.
type keyed struct {
	raw  json.RawMessage
	name string
}

// Run implements worker.Worker.
func (d *Dedupe) Run(ctx context.Context, run *worker.Run) error {
	if err := d.Validate(); err != nil {
		return err
	}
	var batch []keyed
	err := evaluating{d.In, d.Err, cmp.Or(d.Key, "it"), d.OnError}.run(ctx, run, func(raw json.RawMessage, v any) error {
		name, err := keyOf(v)
		if err != nil {
			return fault(err)
		}
		batch = append(batch, keyed{raw, name})
		return nil
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return d.pass(newTable(run), batch)
}

// pass writes the messages of a batch that have new keys. The state is read in two round
// trips: which keys are known, and which have to go if all others are new.
func (d *Dedupe) pass(tab *table, batch []keyed) error {
	var count int // keys that were ever new
	if _, err := tab.get("dedupe", &count); err != nil {
		return err
	}
	before, capacity := count, cmp.Or(d.Capacity, DefaultCapacity)
	var keys []string
	for i, m := range batch {
		keys = append(keys, "seen."+m.name)
		if count+i >= capacity {
			keys = append(keys, ringKey(count+i, capacity))
		}
	}
	if err := tab.load(keys...); err != nil {
		return err
	}
	for _, m := range batch {
		var known bool
		if _, err := tab.get("seen."+m.name, &known); err != nil {
			return err
		}
		if known {
			continue
		}
		if err := remember(tab, m.name, count, capacity); err != nil {
			return err
		}
		count++
		if err := d.Out.Write(m.raw); err != nil {
			return err
		}
	}
	if count == before {
		return nil
	}
	_, err := tab.set("dedupe", count)
	return err
}

// ringKey is where the state has the name of the n-th key.
func ringKey(n, capacity int) string { return "ring." + strconv.Itoa(n%capacity) }

// remember puts the n-th key into the state, in the place of one that is forgotten.
func remember(tab *table, name string, n, capacity int) error {
	slot := ringKey(n, capacity)
	if n >= capacity {
		var oldest string
		ok, err := tab.get(slot, &oldest)
		if err == nil && !ok {
			err = lost(slot)
		}
		if err != nil {
			return err
		}
		tab.unset("seen." + oldest)
	}
	if _, err := tab.set(slot, name); err != nil {
		return err
	}
	_, err := tab.set("seen."+name, true)
	return err
}
