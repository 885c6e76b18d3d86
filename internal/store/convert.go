package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// Retyped is a port that gets another Go type with a patch.
type Retyped struct {
	job.PortRef
	Path     string // of the job, below the graph
	From, To string
	// Converted are the messages that wait there, of the new type; the port's head must still be Head then, and it must hold no
	// more. Without Convert it must hold none.
	Convert   bool
	Head      int64
	Converted []json.RawMessage
}

// Refused is the error of a patch that leaves that many messages of another type in the port.
func (r *Retyped) Refused(waiting int64) error {
	return fmt.Errorf("%w: port %q of job %q holds %d messages of Go type %s, and is to have %s: let them be read first, or convert them with client.Convert",
		job.ErrStatus, r.Port, r.Path, waiting, r.From, r.To)
}

// EncodeTypes writes what MessageTypes returns as one text, and DecodeTypes reads it.
func EncodeTypes(types map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(types)) {
		b.WriteString(key + "\t" + types[key] + "\n")
	}
	return b.String()
}

// DecodeTypes reads what EncodeTypes returned.
func DecodeTypes(text string) map[string]string {
	types := map[string]string{}
	for line := range strings.Lines(text) {
		key, typ, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		types[key] = typ
	}
	return types
}
