package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Row has one message of each of several In ports, by name.
type Row map[string]json.RawMessage

// Decode decodes the message of a port into v.
func (r Row) Decode(in string, v any) error {
	if err := port.Decode(r[in], v); err != nil {
		return fmt.Errorf("port %q: %w", in, err)
	}
	return nil
}

// Zip joins In ports: it calls fn with a row of one message of each, in order, as
// long as each has one or has a default and at least one has a message. When only some
// have messages and another has neither that nor a default, it takes nothing more and
// returns ErrSuspend, which Run passes on. When none has a message and all have defaults,
// fn is called once with these; what it writes becomes the default of the Out ports; and
// not again until a default changes. Zip returns the first error of fn.
func (r *Run) Zip(fn func(Row) error, ports ...string) error {
	if len(ports) == 0 {
		return nil
	}
	boxes := make([]*inbox, len(ports))
	for i, name := range ports {
		in, err := r.In(name)
		if err != nil {
			return err
		}
		if slices.Contains(ports[:i], name) {
			return fmt.Errorf("%w %q is given to Zip twice: a row has one message of each port", job.ErrPort, name)
		}
		boxes[i] = in.(*inbox) //nolint:forcetypeassert // Run.In returns nothing else
	}
	for {
		data, empty := r.count(boxes)
		switch {
		case data > 0 && empty > 0:
			return ErrSuspend
		case data == 0 && empty > 0:
			return nil
		case data == 0:
			return r.onDefaults(boxes, fn)
		}
		row := Row{}
		var read []*inbox
		for _, in := range boxes {
			raw, ok, err := in.message()
			if err != nil {
				return err
			}
			if ok {
				read = append(read, in)
			}
			row[in.name] = raw
		}
		r.lastRead(read)
		if err := fn(row); err != nil {
			return err
		}
	}
}

// count tells how many ports have messages, and how many have neither that nor a default.
func (r *Run) count(boxes []*inbox) (data, empty int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range boxes {
		if in.left > 0 {
			data++
		} else if in.fallback == nil {
			empty++
		}
	}
	return data, empty
}

// onDefaults calls fn with the defaults of all ports, unless it did with the same before.
func (r *Run) onDefaults(boxes []*inbox, fn func(Row) error) error {
	row := Row{}
	var names []string
	for _, in := range boxes {
		row[in.name] = in.fallback
		names = append(names, in.name)
	}
	sort.Strings(names)
	h := sha256.New()
	for _, name := range names {
		_, _ = fmt.Fprintf(h, "%d:%s", len(row[name]), row[name]) // a hash never fails
	}
	key, sum := "weir.defaults:"+strings.Join(names, ","), hex.EncodeToString(h.Sum(nil))
	var before string
	if _, err := r.State().Get(key, &before); err != nil || before == sum {
		return err
	}
	r.lastRead(nil)
	r.setDefaulting(true)
	err := fn(row)
	r.setDefaulting(false)
	if err != nil && !errors.Is(err, ErrSuspend) {
		return err
	}
	return errors.Join(err, r.State().Set(key, sum))
}

func (r *Run) setDefaulting(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.defaulting = on
}
