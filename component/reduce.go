package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of Reduce's parameter emit.
const (
	EmitEnd  = "end"  // the result, at the end of in; the default
	EmitEach = "each" // what there is after each message
)

// DefaultMaxKeys is how many keys Reduce knows unless told otherwise.
const DefaultMaxKeys = 100_000

// Reduce folds messages into one value: expr makes a new acc of acc and it. With key it
// does so for each key apart and writes {"key", "value"}, in the order in which the keys
// first came. Counting is expr = "acc + 1", seed = 0.
//
// The result is the same however runs fall. With emit = end it is written at the end of
// in; without messages and key that is the seed.
type Reduce struct {
	pure
	// Expr is the expression, over acc and it.
	Expr string `json:"expr,omitempty" doc:"expression over acc and it, the message, that gives the new acc"`
	// Seed is the first acc. Without one it is null.
	Seed json.RawMessage `json:"seed,omitempty" doc:"the first acc, default null"`
	// Key is an expression over it. Empty means that all messages go together.
	Key string `json:"key,omitempty" doc:"expression over it; messages of different keys are folded apart"`
	// Emit is when results are written.
	Emit string `json:"emit,omitempty" doc:"end (default) or each: write results at the end, or after each message"`
	// MaxKeys is how many keys are allowed. Zero means DefaultMaxKeys.
	MaxKeys int `json:"max_keys,omitempty" doc:"keys allowed, default 100000; more fail the job"`
	// OnError is what becomes of messages for which an expression fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`
}

// JobType implements job.TypeNamer.
func (*Reduce) JobType() string { return "reduce" }

// Describe implements Component.
func (*Reduce) Describe() string { return "folds messages into one value, or one for each key" }

// Validate implements Component.
func (r *Reduce) Validate() error {
	var c check
	c.expr("expr", r.Expr, scopeReduce, false)
	c.expr("key", r.Key, scopeItem, true)
	if len(r.Seed) > 0 {
		if err := port.Check(r.Seed); err != nil {
			c.add("seed: %v", err)
		}
	}
	c.oneOf("emit", r.Emit, EmitEnd, EmitEach)
	c.count("max_keys", r.MaxKeys)
	c.onError(r.OnError)
	return c.err(r)
}

// folded is the value of one key as it is written.
type folded struct {
	Key   json.RawMessage `json:"key"`
	Value json.RawMessage `json:"value"`
}

// reduceHead is what the state of Reduce begins with.
type reduceHead struct {
	Keys int `json:"keys"` // that are known
	Sent int `json:"sent"` // whose results were written at the end
}

// folding is the value of one key in a run.
type folding struct {
	slot int             // its number
	name string          // of the key in the state
	key  json.RawMessage // nil without keys
	acc  any
	raw  json.RawMessage // acc as it is stored; nil until there was a message
}

// reducing is one run of Reduce.
type reducing struct {
	*Reduce
	tab  *table
	expr *expression
	key  *expression // nil without keys
	head reduceHead
	old  reduceHead
	q    quota
	accs map[string]*folding // those that changed, by name
}

// Run implements worker.Worker.
func (r *Reduce) Run(ctx context.Context, run *worker.Run) error {
	if err := r.Validate(); err != nil {
		return err
	}
	w := reducing{Reduce: r, tab: newTable(run), accs: map[string]*folding{}}
	var err error
	if w.expr, err = newExpression(ctx, run, r.Expr, scopeReduce); err != nil {
		return err
	}
	if r.Key != "" {
		if w.key, err = newExpression(ctx, run, r.Key, scopeItem); err != nil {
			return err
		}
	}
	if _, err := w.tab.get("reduce", &w.head); err != nil {
		return err
	}
	w.old = w.head
	err = w.q.drain(ctx, r.In, func(raw json.RawMessage) error {
		return reject(ctx, r.OnError, r.Err, raw, w.fold(raw))
	})
	if err == nil {
		err = w.save()
	}
	switch {
	case err != nil || r.Emit == EmitEach:
		return err
	case r.In.Done():
		return once(run, func() error { return w.finish(ctx, run) })
	case r.In.Len() == 0:
		return worker.ErrSuspend // there is a result to be written some day
	}
	return nil
}

// fold adds a message to the value of its key.
func (w *reducing) fold(raw json.RawMessage) error {
	it, err := decode(raw)
	if err != nil {
		return fault(err)
	}
	f, err := w.find(it)
	if err != nil {
		return err
	}
	acc, err := w.expr.reduce(f.acc, it)
	if err != nil {
		return fault(err)
	}
	value, stored, err := settle(acc)
	if err != nil {
		return fault(err)
	}
	if err := checkSize(stored); err != nil {
		return err
	}
	if f.raw == nil {
		if _, err := w.tab.set("slot."+f.name, f.slot); err != nil {
			return err
		}
		w.head.Keys++
	}
	f.acc, f.raw = value, stored
	w.accs[f.name] = f
	w.q.bytes += len(stored)
	if w.Emit != EmitEach {
		return nil
	}
	return w.write(f)
}

// find returns the value of a message's key, with the seed if the key is new.
func (w *reducing) find(it any) (*folding, error) {
	f := &folding{}
	if w.key != nil {
		v, err := w.key.eval(it)
		if err != nil {
			return nil, fault(err)
		}
		if f.key, err = encode(v); err != nil {
			return nil, fault(err)
		}
		if f.name, err = keyOf(v); err != nil {
			return nil, fault(err)
		}
	}
	if known := w.accs[f.name]; known != nil {
		return known, nil
	}
	known, err := w.tab.get("slot."+f.name, &f.slot)
	if err != nil {
		return nil, err
	}
	if known {
		return w.read(f.slot)
	}
	if most := cmp.Or(w.MaxKeys, DefaultMaxKeys); w.head.Keys >= most {
		return nil, fmt.Errorf("there are more than %d keys, and max_keys allows no more", most)
	}
	f.slot = w.head.Keys
	f.acc, err = decode(w.seed())
	return f, err
}

func (w *reducing) seed() json.RawMessage {
	if len(w.Seed) == 0 {
		return json.RawMessage("null")
	}
	return w.Seed
}

func accKey(slot int) string { return "acc." + strconv.Itoa(slot) }

// read reads a value from the state.
func (w *reducing) read(slot int) (*folding, error) {
	var kept struct {
		folded
		Name string `json:"name"`
	}
	ok, err := w.tab.get(accKey(slot), &kept)
	if err == nil && !ok {
		err = lost(accKey(slot))
	}
	if err != nil {
		return nil, err
	}
	f := &folding{slot: slot, name: kept.Name, key: kept.Key, raw: kept.Value}
	f.acc, err = decode(f.raw)
	return f, err
}

// save puts the values that changed into the state.
func (w *reducing) save() error {
	for _, f := range w.accs {
		_, err := w.tab.set(accKey(f.slot), map[string]any{"key": f.key, "value": f.raw, "name": f.name})
		if err != nil {
			return err
		}
	}
	return w.saveHead()
}

func (w *reducing) saveHead() error {
	if w.head == w.old {
		return nil
	}
	w.old = w.head
	_, err := w.tab.set("reduce", w.head)
	return err
}

// write writes a value, with its key if there are keys.
func (w *reducing) write(f *folding) error {
	out := f.raw
	if w.key != nil {
		var err error
		if out, err = port.Encode(folded{Key: f.key, Value: f.raw}); err != nil {
			return err
		}
	}
	w.q.bytes += len(out)
	return w.Out.Write(out)
}

// finish writes all results.
func (w *reducing) finish(ctx context.Context, run *worker.Run) error {
	if w.key == nil && w.head.Keys == 0 {
		return w.Out.Write(w.seed())
	}
	const page = 100
	p := pace{run: run, save: w.saveHead}
	for w.head.Sent < w.head.Keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.head.Sent%page == 0 {
			var keys []string
			for slot := w.head.Sent; slot < min(w.head.Sent+page, w.head.Keys); slot++ {
				keys = append(keys, accKey(slot))
			}
			if err := w.tab.load(keys...); err != nil {
				return err
			}
		}
		f, err := w.read(w.head.Sent)
		if err != nil {
			return err
		}
		w.tab.unset(accKey(w.head.Sent))
		w.head.Sent++
		if err := w.write(f); err != nil {
			return err
		}
		if err := p.wrote(len(f.raw)); err != nil {
			return err
		}
	}
	return w.saveHead()
}
