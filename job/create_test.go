package job_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
)

// planned is a store that keeps the plan of what it is to create.
type planned struct {
	job.Store
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
		if _, err := job.NewClient(s).Create(t.Context(), job.New{Type: "T", At: at}); err != nil {
			t.Fatal(err)
		}
		if got := s.plan.Nodes[0].At; !got.Equal(at) {
			t.Errorf("a time that is %s: the store is told %s, want %s", name, got, at)
		}
	}
}
