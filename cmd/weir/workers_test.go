package main

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/store"
)

// A server that leases runs to workers over HTTP has no slots.
func TestWorkersOverHTTP(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := engineTables(&text, []store.EngineInfo{{Host: "a", PID: 1, Running: 2, Concurrency: 8}, {Host: "a", PID: 1, Running: 3}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" 2/8 ", " 3 over HTTP "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &text)
		}
	}
}
