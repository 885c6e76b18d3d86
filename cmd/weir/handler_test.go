package main

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestHandlersAsJSON compares what is printed of handlers with docs/cli.schema.json.
func TestHandlersAsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schema := schemaOf(t)
	w.output(w.line("handler set upper --body payload"))
	for name, command := range map[string]string{"handler": "handler get upper", "handlers": "handler list"} {
		got := w.output(w.line(command, "-o", "json"))
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
		if err != nil {
			t.Errorf("weir %s: %v", command, err)
		} else if err := schema(name).Validate(v); err != nil {
			t.Errorf("weir %s: %v\n%s", command, err, got)
		}
	}
}
