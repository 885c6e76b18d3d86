package worker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// ticket is what ends a run that a client has: all that a server must know of it then, so that none has to remember it.
type ticket struct {
	Job   job.ID  `json:"j"`
	Token string  `json:"t"`
	In    []shown `json:"i,omitempty"`
	Step  int64   `json:"s,omitempty"` // runs of the job that were committed before
	Woken int64   `json:"w,omitempty"`
	End   bool    `json:"e,omitempty"` // the run is the job's last one
}

// shown is what a client was shown of an In port.
type shown struct {
	Port   string `json:"p"`
	Head   int64  `json:"h,omitempty"`
	Len    int    `json:"n,omitempty"` // messages in it
	Items  int    `json:"m,omitempty"` // of these, shown
	Closed bool   `json:"c,omitempty"`
}

// Ticket returns the text that Refresh, Commit, Fail and Release take. It is made for one run, and any process may be given it.
func (l Leased) Ticket() string {
	t := ticket{Job: l.Info.ID, Token: l.Token, Step: l.Info.Steps, Woken: l.WokenTo, End: l.Shutdown}
	for i := range l.Info.Ports {
		p := &l.Info.Ports[i]
		box := l.In.Of(p.Name)
		if p.Dir == port.Input && p.Name != port.Any && (p.Closed || box.Len > 0) {
			t.In = append(t.In, shown{Port: p.Name, Head: box.Head, Len: box.Len, Items: len(box.Items), Closed: p.Closed})
		}
	}
	raw, _ := json.Marshal(t) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ticketOf reads a Ticket.
func ticketOf(text string) (t ticket, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err == nil {
		_, err = job.ParseID(string(t.Job))
	}
	for _, in := range t.In { // what nobody was shown is not read
		if in.Items < 0 || in.Items > batchMessages {
			err = job.ErrName
		}
	}
	if err != nil || t.Token == "" {
		return ticket{}, fmt.Errorf("%w: %.40q is no run: use the text that came with it", job.ErrName, text)
	}
	return t, nil
}

// ended tells whether the run is the last one of its job that ended: a repetition ends it again. committed says how: else it
// failed, or was handed back. (A failure that put a message aside was committed, too.)
func (t *ticket) ended(info *job.Info) (ended, committed bool) {
	return info.Last == t.Token, info.Steps > t.Step
}

// snapshot is what the client saw, as far as the end of the run depends on it.
func (t *ticket) snapshot(info *job.Info) *store.Snapshot {
	snap := &store.Snapshot{Info: *info, Token: t.Token, Shutdown: t.End, WokenTo: t.Woken}
	snap.Defaults = map[string]json.RawMessage{}
	for i := range snap.Info.Ports {
		if p := &snap.Info.Ports[i]; p.Dir == port.Input {
			at := t.of(p.Name)
			p.Closed = at.Closed // what happened later is for the next run
			if p.Default != nil {
				snap.Defaults[p.Name] = p.Default
			}
			snap.In = append(snap.In, store.Inbox{Port: p.Name, Head: at.Head, Len: at.Len})
		}
	}
	return snap
}

// of returns what was shown of a port.
func (t *ticket) of(name string) shown {
	for _, s := range t.In {
		if s.Port == name {
			return s
		}
	}
	return shown{Port: name}
}
