package trigger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// declareTries is how often Declare looks again after others have changed the same trigger.
const declareTries = 5

// Declare makes a trigger with an alias, or changes the one that has it into the one that is declared, as Change does: so a
// program declares its triggers each time it starts, and another version of it declares others. Nothing is done if the trigger is
// so already, also if it has failed, or has completed as its schedule has no further time. One that fires no more and was another
// one loses the alias to a new one. What Change has made of a trigger by other means does not stay; a pause does. Options are for
// a trigger that is made.
//
// The error wraps job.ErrExists if a job that is no trigger has the alias, job.ErrConfig if the definition is wrong or would change
// a webhook into something else, and job.ErrStatus if the trigger has failed and is to change: it is to be retried first.
func Declare(ctx context.Context, c *client.Client, alias string, d Definition, opts ...job.Option) (*client.Handle, error) {
	if err := job.CheckAlias(alias); err != nil {
		return nil, fmt.Errorf("declaring a trigger: %w", err)
	}
	var err error
	for range declareTries {
		var h *client.Handle
		if h, err = declare(ctx, c, alias, d, opts); err == nil {
			return h, nil
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return nil, fmt.Errorf("declaring trigger %s: %w", alias, err)
}

// errMoved: another process declares the same trigger, or deletes it.
var errMoved = fmt.Errorf("%w: others make or delete it at the same time: declare it again", job.ErrExists)

func declare(ctx context.Context, c *client.Client, alias string, d Definition, opts []job.Option) (*client.Handle, error) {
	h, err := c.Find(ctx, alias)
	if errors.Is(err, job.ErrNotFound) {
		return declareNew(ctx, c, alias, d, opts)
	}
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, moved(err)
	}
	if info.Type != Type {
		return nil, fmt.Errorf("%w: job %s, a %s, has this alias: choose another one", job.ErrExists, info.ID, info.Type)
	}
	there, err := Of(ctx, c, info, 0)
	if err != nil {
		return nil, moved(err)
	}
	fields, err := there.Definition.into(d)
	switch {
	case err != nil || fields == nil:
		return h, err
	case there.Status.Settled() || there.Status == statemachine.Terminating:
		if err := d.check(ctx, c); err != nil {
			return nil, err
		}
		if err := h.RemoveAlias(ctx, alias); err != nil {
			return nil, moved(err)
		}
		return declareNew(ctx, c, alias, d, opts)
	}
	return h, moved(Change(ctx, c, h, "", fields))
}

// declareNew makes a trigger, unless somebody else makes another one just now.
func declareNew(ctx context.Context, c *client.Client, alias string, d Definition, opts []job.Option) (*client.Handle, error) {
	h, err := Add(ctx, c, d, append(opts[:len(opts):len(opts)], job.Alias(alias))...)
	if errors.Is(err, job.ErrExists) {
		return nil, errMoved
	}
	return h, err
}

// moved is an error that is worth another look if the trigger has just gone.
func moved(err error) error {
	if errors.Is(err, job.ErrNotFound) {
		return errMoved
	}
	return err
}

// into returns the fields of a change that makes another definition of this one; nil: it is the same.
func (d Definition) into(to Definition) (json.RawMessage, error) {
	before, err := d.fields()
	if err != nil {
		return nil, err
	}
	after, err := to.fields()
	if err != nil || maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return nil, err
	}
	for name := range before {
		if after[name] == nil {
			after[name] = json.RawMessage("null")
		}
	}
	return json.Marshal(after)
}

// fields are those of a definition in JSON.
func (d Definition) fields() (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	return fields, json.Unmarshal(raw, &fields)
}
