package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// byHand is what the log of a job says of an act from outside of its runs: what was done, by whom, and with what. It is empty if ctx does
// not name anybody, see job.WithContext: programs that act for themselves do not fill logs.
func (s *Store) byHand(ctx context.Context, id job.ID, done, with string) ([]byte, error) {
	by := job.Actor(ctx)
	if by == "" {
		return nil, nil
	}
	note, err := json.Marshal(map[string]string{done: job.ByHand{By: by, Reason: with}.String()})
	if err != nil {
		return nil, err
	}
	return s.secrets.hide(s.secrets.place(job.KindLog, id, ""), note)
}

// changedKeys says which keys of a state are set, and which removed.
func changedKeys(set map[string]json.RawMessage, unset []string) string {
	var parts []string
	for what, keys := range map[string][]string{"set": slices.Sorted(maps.Keys(set)), "removed": unset} {
		if len(keys) > namedKeys {
			keys = append(keys[:namedKeys:namedKeys], fmt.Sprintf("and %d more", len(keys)-namedKeys))
		}
		if len(keys) > 0 {
			parts = append(parts, what+" "+strings.Join(keys, ", "))
		}
	}
	slices.Sort(parts) // removed, set
	return strings.Join(parts, "; ")
}

// namedKeys is how many keys are named.
const namedKeys = 20
