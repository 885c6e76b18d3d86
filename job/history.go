package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/weirworks/weir/port"
)

// PortRef names a port of a job.
type PortRef struct {
	Job  ID       `json:"job"`
	Dir  port.Dir `json:"dir"`
	Port string   `json:"port"`
}

// RunEntry is what one run, or one act from outside, read and wrote.
type RunEntry struct {
	At     time.Time  `json:"at"`
	Job    ID         `json:"job"`
	Step   int64      `json:"step"`
	By     string     `json:"by,omitempty"` // who acted from outside
	Read   []Movement `json:"read,omitempty"`
	Write  []Movement `json:"write,omitempty"`
	Sent   []Movement `json:"sent,omitempty"` // where the messages written went
	Groups []RunEntry `json:"groups,omitempty"`
	Error  string     `json:"error,omitempty"`
	Stack  string     `json:"stack,omitempty"`
	TookMS int64      `json:"took_ms,omitempty"` // how long the run took, or went on since its last commit; 0 for under a millisecond
}

// Movement is messages that passed a port together.
type Movement struct {
	Job  ID                `json:"job"`
	Dir  port.Dir          `json:"dir"`
	Port string            `json:"port"`
	From int64             `json:"from"` // messages that passed the port before these
	N    int               `json:"n"`
	Data []json.RawMessage `json:"data,omitempty"` // left out when large
	// Context of messages written: the keys that their writer added.
	Context port.Context `json:"context,omitempty"`
}

// Entry is one entry of the log of a tree: what a run, or an act from outside, read and wrote,
// or a note, which is something that a run logged.
type Entry struct {
	Position string // orders the entries of a tree
	At       time.Time
	Job      ID
	Run      *RunEntry // nil for a note
	Note     json.RawMessage
	Context  port.Context // the keys under which the note was logged
}

// LogEntry is one line that a run logged.
type LogEntry struct {
	At    time.Time       `json:"at"`
	Job   ID              `json:"job"`
	Entry json.RawMessage `json:"entry"`
	// Context has the keys under which it was logged.
	Context port.Context `json:"context,omitempty"`
}

// Trimmed says that the first entries of the log of a tree are gone: it keeps some 10,000, or those that are younger than
// Retention.Log.
type Trimmed struct {
	Tree    ID        `json:"tree"`
	Entries int64     `json:"entries"` // how many are gone; what several runs that shared a commit did may be one
	Since   time.Time `json:"since"`   // when the first one that is left was made: what is older is gone
}

// Encode returns the entry as JSON, as it is put into the log: without At, Job and Sent, which the
// log tells besides. Movements without a job are of that Job. The data are JSON already, and stay as they are.
func (e *RunEntry) Encode() string { return string(e.append(make([]byte, 0, 512))) }

// Decode reads what Encode returned, of a job, and put into the log at that time.
func (e *RunEntry) Decode(raw []byte, id ID, at time.Time) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // what writers put into contexts is not rounded
	if err := d.Decode(e); err != nil {
		return fmt.Errorf("entry of the log of job %s: %w", id, err)
	}
	e.Job, e.At = id, at
	e.movementsOf(id)
	return nil
}

func (e *RunEntry) movementsOf(id ID) {
	for _, all := range [][]Movement{e.Read, e.Write} {
		for i := range all {
			if all[i].Job == "" {
				all[i].Job = id
			}
		}
	}
	for i := range e.Groups {
		e.Groups[i].movementsOf(id)
	}
}

func (e *RunEntry) append(to []byte) []byte {
	to = strconv.AppendInt(append(to, `{"step":`...), e.Step, 10)
	for _, text := range []struct{ name, value string }{{"by", e.By}, {"error", e.Error}, {"stack", e.Stack}} {
		if text.value != "" {
			to = append(append(append(to, `,"`...), text.name...), `":`...)
			to = appendJSON(to, text.value)
		}
	}
	to = appendMovements(to, `,"read":[`, e.Read)
	to = appendMovements(to, `,"write":[`, e.Write)
	for i := range e.Groups {
		to = append(to, []string{`,"groups":[`, `,`}[min(i, 1)]...)
		to = e.Groups[i].append(to)
	}
	if len(e.Groups) > 0 {
		to = append(to, ']')
	}
	if e.TookMS > 0 {
		to = strconv.AppendInt(append(to, `,"took_ms":`...), e.TookMS, 10)
	}
	return append(to, '}')
}

func appendMovements(to []byte, name string, all []Movement) []byte {
	if len(all) == 0 {
		return to
	}
	to = append(to, name...)
	for i := range all {
		if i > 0 {
			to = append(to, ',')
		}
		m := &all[i]
		to = append(append(to, `{"dir":"`...), m.Dir.String()...)
		if m.Job != "" {
			to = append(append(to, `","job":"`...), m.Job...) // IDs and names of ports need no escapes
		}
		to = append(append(to, `","port":"`...), m.Port...)
		to = append(to, '"')
		if m.From != 0 {
			to = strconv.AppendInt(append(to, `,"from":`...), m.From, 10)
		}
		to = strconv.AppendInt(append(to, `,"n":`...), int64(m.N), 10)
		for j, data := range m.Data {
			to = append(append(to, []string{`,"data":[`, `,`}[min(j, 1)]...), data...)
		}
		if len(m.Data) > 0 {
			to = append(to, ']')
		}
		if len(m.Context) > 0 {
			to = appendJSON(append(to, `,"context":`...), m.Context)
		}
		to = append(to, '}')
	}
	return append(to, ']')
}

// appendJSON appends a value that cannot fail to be JSON: a text, or a context, which was JSON before.
func appendJSON(to []byte, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	return append(to, raw...)
}
