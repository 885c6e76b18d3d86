package workkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// array encodes values as one JSON array.
func array(values []any) (json.RawMessage, error) {
	if values == nil {
		values = []any{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(values); err != nil {
		return nil, fmt.Errorf("%w of %s: args: %w", job.ErrConfig, Label, err)
	}
	return b.Bytes(), nil
}

// State is what an entry does.
type State string

// The states.
const (
	Scheduled State = "scheduled" // it waits for its time
	Due       State = "due"       // its time has come
	Refused   State = "refused"   // its time has come, and it cannot be launched: Status.Why says why
	Running   State = "running"   // its last run goes on
	Taken     State = "taken"     // it is in no queue: a listener that is not Weir's has taken it, or died with it
)

// Status is what is known of an entry.
type Status struct {
	ID    string          `json:"id"`
	State State           `json:"state"`
	Job   string          `json:"job,omitempty"`
	Type  string          `json:"type,omitempty"` // that it names
	Args  json.RawMessage `json:"args,omitempty"`
	Cron  string          `json:"cron,omitempty"`
	Next  *time.Time      `json:"next,omitempty"`
	Tree  job.ID          `json:"tree,omitempty"` // of the last run, while it goes on
	// Why says why it cannot be launched, also before its time.
	Why string `json:"why,omitempty"`
}

// List tells of the entries of a schedule, the next one first.
func List(ctx context.Context, s *redisstore.Store, name string) ([]Status, error) {
	kit, err := s.WorkKit(name)
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	types := catalogue{store: s}
	if err := types.read(ctx); err != nil {
		return nil, err
	}
	all := []Status{}
	if err := kit.Entries(ctx, idOf, func(e redisstore.WorkKitEntry) error {
		all = append(all, status(e, now, &types))
		return nil
	}); err != nil {
		return nil, fmt.Errorf("reading the schedule %s: %w", name, err)
	}
	slices.SortFunc(all, func(a, b Status) int {
		switch {
		case a.Next != nil && b.Next != nil:
			return cmp.Or(a.Next.Compare(*b.Next), cmp.Compare(a.ID, b.ID))
		case a.Next != nil:
			return 1 // what runs comes before what waits
		case b.Next != nil:
			return -1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all, nil
}

// status says what an entry does.
func status(e redisstore.WorkKitEntry, now time.Time, types *catalogue) Status {
	st := Status{ID: e.ID, Tree: e.Running}
	entry, err := parse(e.Payload)
	if err == nil {
		st.Job, st.Type, st.Args, st.Cron = entry.Job, entry.Type(), entry.Args, entry.Cron
		_, err = entry.after(now, now)
	}
	if err == nil {
		_, err = types.plan(entry)
	}
	if err != nil {
		st.Why = err.Error()
	}
	if !e.Due.IsZero() {
		st.Next = &e.Due
	}
	switch {
	case e.Running != "" && st.Next == nil:
		st.State = Running
	case st.Next == nil:
		st.State = Taken
	case e.Due.After(now):
		st.State = Scheduled
	case st.Why != "":
		st.State = Refused
	default:
		st.State = Due
	}
	return st
}
