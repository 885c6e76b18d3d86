package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// byHand is what the log of a job says of an act from outside of its runs: what was done, by whom, and with what. It is empty if ctx does
// not name anybody, see job.WithContext: programs that act for themselves do not fill logs.
func (s *Store) byHand(ctx context.Context, id job.ID, done, with string) ([]byte, error) {
	by := job.Actor(ctx)
	if by == "" {
		return nil, nil
	}
	return s.actNote(id, done, store.ByHand{By: by, Reason: with}.String())
}

// actNote is an entry of the log of a job, as scripts take it: what was done to it, and a text.
func (s *Store) actNote(id job.ID, done, text string) ([]byte, error) {
	note, err := json.Marshal(map[string]string{done: text})
	if err != nil {
		return nil, err
	}
	return s.secrets.hide(s.secrets.place(job.KindLog, id, ""), note)
}

// changedKeys says which keys of a state are set, and which removed.
func changedKeys(set map[string]json.RawMessage, unset []string) string {
	var parts []string
	for what, keys := range map[string][]string{"set": slices.Sorted(maps.Keys(set)), "removed": unset} {
		var names []string
		for _, key := range keys[:min(len(keys), namedKeys)] {
			names = append(names, brief(key))
		}
		if more := len(keys) - namedKeys; more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	slices.Sort(parts) // removed, set
	return strings.Join(parts, "; ")
}

// brief is a name as logs have it, of which a long one is cut.
func brief(name string) string {
	if len(name) <= longName {
		return name
	}
	return strings.ToValidUTF8(name[:longName], "") + "…"
}

const (
	namedKeys = 20  // how many keys are named
	longName  = 128 // bytes of a name that are not cut
)
