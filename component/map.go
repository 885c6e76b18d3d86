package component

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// evaluating is a run that evaluates one expression for each message of one In port.
type evaluating struct {
	in      port.In[json.RawMessage]
	errs    port.Out[Rejected]
	source  string
	onError string
}

// run gives each message, with what the expression makes of it, to fn. An error of fn
// that is a fault is the message's, as is one of the expression.
func (e evaluating) run(ctx context.Context, run *worker.Run, fn func(raw json.RawMessage, v any) error) error {
	x, err := newExpression(ctx, run, e.source, scopeItem)
	if err != nil {
		return err
	}
	var q quota
	return q.drain(ctx, e.in, func(raw json.RawMessage) error {
		v, err := x.message(raw)
		if err == nil {
			err = fn(raw, v)
		}
		return reject(ctx, e.onError, e.errs, raw, err)
	})
}

// message evaluates the expression for a message. The error is a fault of that.
func (e *expression) message(raw json.RawMessage) (any, error) {
	it, err := decode(raw)
	if err != nil {
		return nil, fault(err)
	}
	v, err := e.eval(it)
	return v, fault(err)
}

// CheckCondition returns an error unless a text is an expression over it, a message, as Filter has.
func CheckCondition(source string) error {
	_, err := compile(source, scopeItem)
	return err
}

// Condition returns a function that tells in a run for which messages such an expression is true.
func Condition(ctx context.Context, run *worker.Run, source string) (func(json.RawMessage) (bool, error), error) {
	e, err := newExpression(ctx, run, source, scopeItem)
	if err != nil {
		return nil, err
	}
	return e.condition, nil
}

// condition evaluates the expression for a message, to true or false.
func (e *expression) condition(raw json.RawMessage) (bool, error) {
	v, err := e.message(raw)
	if err != nil {
		return false, err
	}
	return truth(e.source, v)
}

func truth(source string, v any) (bool, error) {
	ok, is := v.(bool)
	if !is {
		return false, fault(fmt.Errorf("expression %q gives %s, not true or false", clip(source, 60), kindOf(v)))
	}
	return ok, nil
}

// result turns what an expression made into a message.
func result(v any) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, fault(err)
	}
	return raw, checkSize(raw)
}

// Map writes what an expression makes of each message.
//
// Order is kept, the result is the same however runs fall, and the end of in is the end
// of out.
type Map struct {
	pure
	// Expr is the expression, over it.
	Expr string `json:"expr,omitempty" doc:"expression over it, the message"`
	// OnError is what becomes of messages for which it fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`
}

// JobType implements job.TypeNamer.
func (*Map) JobType() string { return "map" }

// Describe implements Component.
func (*Map) Describe() string { return "writes what an expression makes of each message" }

// Validate implements Component.
func (m *Map) Validate() error {
	var c check
	c.expr("expr", m.Expr, scopeItem, false)
	c.onError(m.OnError)
	return c.err(m)
}

// Run implements worker.Worker.
func (m *Map) Run(ctx context.Context, run *worker.Run) error {
	if err := m.Validate(); err != nil {
		return err
	}
	return evaluating{m.In, m.Err, m.Expr, m.OnError}.run(ctx, run, func(_ json.RawMessage, v any) error {
		raw, err := result(v)
		if err != nil {
			return err
		}
		return m.Out.Write(raw)
	})
}

// Filter passes on the messages for which an expression is true, unchanged.
//
// Order is kept, the result is the same however runs fall, and the end of in is the end
// of out. To keep the others too use Route.
type Filter struct {
	pure
	// Expr is the expression, over it.
	Expr string `json:"expr,omitempty" doc:"expression over it, the message; true lets it pass"`
	// OnError is what becomes of messages for which it fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`
}

// JobType implements job.TypeNamer.
func (*Filter) JobType() string { return "filter" }

// Describe implements Component.
func (*Filter) Describe() string { return "passes on the messages for which an expression is true" }

// Validate implements Component.
func (f *Filter) Validate() error {
	var c check
	c.expr("expr", f.Expr, scopeItem, false)
	c.onError(f.OnError)
	return c.err(f)
}

// Run implements worker.Worker.
func (f *Filter) Run(ctx context.Context, run *worker.Run) error {
	if err := f.Validate(); err != nil {
		return err
	}
	return evaluating{f.In, f.Err, f.Expr, f.OnError}.run(ctx, run, func(raw json.RawMessage, v any) error {
		ok, err := truth(f.Expr, v)
		if err != nil || !ok {
			return err
		}
		return f.Out.Write(raw)
	})
}

// FlatMap writes each element of the list that an expression makes of a message as a
// message of its own. For null it writes none.
//
// Order is kept, the result is the same however runs fall, and the end of in is the end
// of out.
type FlatMap struct {
	pure
	// Expr is the expression, over it.
	Expr string `json:"expr,omitempty" doc:"expression over it, the message, that gives a list; default it"`
	// OnError is what becomes of messages for which it fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`
}

// JobType implements job.TypeNamer.
func (*FlatMap) JobType() string { return "flat_map" }

// Describe implements Component.
func (*FlatMap) Describe() string {
	return "writes each element of the list that an expression makes of a message"
}

// Validate implements Component.
func (f *FlatMap) Validate() error {
	var c check
	c.expr("expr", f.expr(), scopeItem, false)
	c.onError(f.OnError)
	return c.err(f)
}

func (f *FlatMap) expr() string {
	if f.Expr == "" {
		return "it"
	}
	return f.Expr
}

// Run implements worker.Worker.
func (f *FlatMap) Run(ctx context.Context, run *worker.Run) error {
	if err := f.Validate(); err != nil {
		return err
	}
	return evaluating{f.In, f.Err, f.expr(), f.OnError}.run(ctx, run, func(_ json.RawMessage, v any) error {
		items, err := elements(v)
		if err != nil {
			return fault(err)
		}
		for _, raw := range items {
			if err := checkSize(raw); err != nil {
				return err
			}
		}
		for _, raw := range items {
			if err := f.Out.Write(raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// elements splits a list into messages.
func elements(v any) ([]json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := encode(v)
	if err != nil {
		return nil, err
	}
	if raw[0] != '[' {
		return nil, fmt.Errorf("the expression gives %s, not a list", kindOf(v))
	}
	var items []json.RawMessage
	return items, json.Unmarshal(raw, &items)
}
