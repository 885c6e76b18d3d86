package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Merging is args that are merged into those of a job.
type Merging struct {
	Type        string // that the job must have
	TypeVersion int    // of the type that Args are of; 0 is 1
	Args        json.RawMessage
}

// MergePatch returns a JSON value changed by another one, as RFC 7396 says. An empty target is {}. It is for stores.
func MergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	if len(target) == 0 {
		target = json.RawMessage("{}")
	}
	var to, by any
	for raw, v := range map[*json.RawMessage]*any{&target: &to, &patch: &by} {
		dec := json.NewDecoder(bytes.NewReader(*raw))
		dec.UseNumber() // as it is written
		if err := dec.Decode(v); err != nil {
			return nil, fmt.Errorf("%w: args that are not valid JSON: %w", job.ErrValue, err)
		}
	}
	return port.Encode(mergePatch(to, by))
}

func mergePatch(target, patch any) any {
	by, is := patch.(map[string]any)
	if !is {
		return patch
	}
	to, is := target.(map[string]any)
	if !is {
		to = map[string]any{}
	}
	for name, v := range by {
		if v == nil {
			delete(to, name)
		} else {
			to[name] = mergePatch(to[name], v)
		}
	}
	return to
}
