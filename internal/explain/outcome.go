package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// Outcome is what came of the last payload of a handler's job.
type Outcome struct {
	Code   handler.Code `json:"code"`
	Status int          `json:"exitcode"`
	Error  string       `json:"error"`
}

// errorShown is how much is shown of the error of a payload.
const errorShown = 200

// outcomeOf returns what the state of a job says of its last payload. One of another program has something else there, or nothing.
func outcomeOf(ctx context.Context, h *client.Handle) (o Outcome, ok bool) {
	state, err := h.State(ctx, handler.StateResult)
	ok = err == nil && json.Unmarshal(state[handler.StateResult], &o) == nil && o.Code != ""
	return o, ok
}

// outcome tells of a payload that failed: it is not tried again, so its job looks as if all were well.
func (t *Tree) outcome(i *job.Info, level int) {
	if t.Outcome == nil || i.Graph {
		return
	}
	o, ok := t.Outcome(i)
	if !ok || o.Code != handler.Failed {
		return
	}
	text := fmt.Sprintf("its last payload failed, with code %d", o.Status)
	if o.Error != "" {
		text += ": " + term.Fit(term.Clean(strings.Join(strings.Fields(o.Error), " ")), errorShown)
	}
	t.say(i, level, Because{Text: text + "; a payload that failed is not tried again. Its result:", Command: fmt.Sprintf("weir state get %s %s", t.Call(i), handler.StateResult)})
}
