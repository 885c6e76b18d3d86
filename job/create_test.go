package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A failure policy needs a graph, or a port for dead letters; what is refused says what to use.
func TestCreateWithFailurePolicy(t *testing.T) {
	t.Parallel()
	own := port.Spec{Name: job.ErrorsPort, Dir: port.Output}
	for name, c := range map[string]struct {
		new    job.New
		typ    job.TypeInfo
		ports  int
		refuse string
	}{
		"none":             {},
		"restart":          {new: job.New{OnFailure: job.Restart}},
		"dead letters":     {new: job.New{OnFailure: job.DeadLetter}, ports: 1},
		"a port for them":  {new: job.New{OnFailure: job.DeadLetter}, typ: job.TypeInfo{Ports: []port.Spec{own}}, ports: 1},
		"a port of text":   {new: job.New{OnFailure: job.DeadLetter}, typ: job.TypeInfo{Ports: []port.Spec{own}, Kinds: map[string]string{port.TypeKey(port.Output, own.Name): port.KindString}}, refuse: "takes no dead letters"},
		"ignored child":    {new: job.New{OnFailure: job.Ignore, Parent: "p", Name: "n"}},
		"ignored root":     {new: job.New{OnFailure: job.Ignore}, refuse: `use "restart" or "dead_letter"`},
		"of another name":  {new: job.New{OnFailure: "retry"}, refuse: `failure policy "retry": use one of`},
		"with other ports": {new: job.New{OnFailure: job.DeadLetter, Ports: []port.Spec{{Name: "in", Dir: port.Input}}}, ports: 2},
	} {
		c.new.Type = "T"
		plan, err := job.PlanNew(t.Context(), func(context.Context, string, string) (*job.TypeInfo, error) { return &c.typ, nil }, c.new)
		switch {
		case c.refuse != "":
			if !errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v does not say %s", name, err, c.refuse)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case plan.Nodes[0].OnFailure != c.new.OnFailure || len(plan.Nodes[0].Ports) != c.ports:
			t.Errorf("%s: %+v", name, plan.Nodes[0])
		}
	}
}

// Bytes are base64 in JSON: who gives JSON as []byte is told of json.RawMessage.
func TestArgsAsBytes(t *testing.T) {
	t.Parallel()
	typ := &job.TypeInfo{Params: []port.Param{{Name: "a", Kind: port.KindString}}}
	find := func(context.Context, string, string) (*job.TypeInfo, error) { return typ, nil }
	args := []byte(`{"a":"b"}`)
	if _, err := job.PlanNew(t.Context(), find, job.New{Type: "T", Args: args}); !errors.Is(err, port.ErrParams) || !strings.Contains(err.Error(), "use json.RawMessage") {
		t.Errorf("as []byte: %v", err)
	}
	if _, err := job.PlanNew(t.Context(), find, job.New{Type: "T", Args: json.RawMessage(args)}); err != nil {
		t.Errorf("as json.RawMessage: %v", err)
	}
}

// planned is a store that keeps the plan of what it is to create.
type planned struct {
	store.Store
	plan *job.Plan
}

func (*planned) Type(context.Context, string, string) (*job.TypeInfo, error) {
	return &job.TypeInfo{}, nil
}

func (s *planned) Create(_ context.Context, _ job.ID, plan *job.Plan, _ string) (bool, error) {
	s.plan = plan
	return true, nil
}

// Whether a time has come is the store's to say: the clock of a client may be wrong.
func TestCreateLeavesTimesToTheStore(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{"none": {}, "past here": time.Now().Add(-time.Minute), "to come": time.Now().Add(time.Minute)} {
		s := &planned{}
		if _, err := client.New(s).Create(t.Context(), job.New{Type: "T", At: at}); err != nil {
			t.Fatal(err)
		}
		if got := s.plan.Nodes[0].At; !got.Equal(at) {
			t.Errorf("a time that is %s: the store is told %s, want %s", name, got, at)
		}
	}
}
