package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// packer has several In ports, none of them named in.
type packer struct {
	Box   port.In[json.RawMessage]
	Label port.In[json.RawMessage]
	Sent  port.Out[json.RawMessage]
}

// Run implements worker.Worker.
func (p *packer) Run(context.Context, *worker.Run) error {
	for one, err := range p.Box.All() {
		if err = errors.Join(err, p.Sent.Write(one)); err != nil {
			return err
		}
	}
	return nil
}

// The message of a webhook goes to the first In port, as the arguments of a job do.
func TestWebhookOfManyPorts(t *testing.T) {
	s, e := still(t, nil, &packer{})
	var l oneLauncher
	s.cozy("POST", "/jobs/launchers/packer", `{"type":"@webhook"}`).is(http.StatusCreated, &l)
	large := `"` + strings.Repeat("x", trigger.MaxMemoMessage) + `"`
	for n, message := range []string{`{"a":"<1>"}`, large} {
		s.cozy("POST", "/jobs/webhooks/"+string(l.Data.ID), message).is(http.StatusNoContent, nil)
		e.Advance(time.Minute)
		got := s.launched(l.Data.ID)
		if len(got) != n+1 || len(got[n].Output["sent"]) != 1 || string(got[n].Output["sent"][0]) != message {
			t.Fatalf("launched %.300s", fmt.Sprintf("%+v", got))
		}
		want := message
		if message == large {
			want = "null" // it is not kept twice
		}
		if string(got[n].Options.Arguments) != want {
			t.Errorf("its arguments are %.80s, want %s", got[n].Options.Arguments, want)
		}
	}
}
