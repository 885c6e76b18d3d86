package explain

import (
	"encoding/json"
	"errors"

	"github.com/weirworks/weir/job"
)

// State is what is shown of a job's state: of one that cannot be decoded here, why.
func State(state map[string]json.RawMessage, err error) (map[string]json.RawMessage, error) {
	if !errors.Is(err, job.ErrCodec) {
		return state, err
	}
	why, err := json.Marshal(err.Error())
	return map[string]json.RawMessage{"?": why}, err
}
