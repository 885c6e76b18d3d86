package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/weirworks/weir/port"
)

// Data of messages is logged up to these sizes; of larger ones only how many there were.
const (
	MaxLoggedMessage = 2 << 10  // bytes of one message
	MaxLoggedEntry   = 16 << 10 // bytes of all in one entry
)

// outsideEntry is what the log says of messages written from outside of runs.
func outsideEntry(id ID, w Write, c port.Context) string {
	m := Movement{Job: id, Dir: w.Dir, Port: w.Port, N: len(w.Items), Context: maps.Clone(c)}
	delete(m.Context, port.ContextBy)
	size := 0
	for _, stored := range w.Items {
		data, _ := port.Split(stored)
		m.Data = append(m.Data, data)
		if size += len(data); len(data) > MaxLoggedMessage || size > MaxLoggedEntry {
			m.Data = nil
			break
		}
	}
	by, _ := c[port.ContextBy].(string)
	return (&RunEntry{By: by, Write: []Movement{m}}).Encode()
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
