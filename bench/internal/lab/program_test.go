package lab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/bench/internal/lab"
)

// A program prints its figures on its last line; whatever else it does is an error that says
// what it printed.
func TestProgram(t *testing.T) {
	for _, c := range []struct{ script, says string }{
		{`echo starting; echo "{\"figures\":[{\"name\":\"chain\",\"value\":7,\"unit\":\"items/s\"}]}"`, ""},
		{`echo "item 3 arrived twice" >&2; exit 1`, "exit status 1: item 3 arrived twice"},
		{`echo done`, "what sh printed"},
		{`echo "{}"`, "sh has no figures"},
		{`case $0 in *'"workload":"chain flow"'*'"chain":12'*) exit 3;; esac`, "exit status 3"},
	} {
		p := &lab.Program{Command: []string{"sh", "-c", c.script}}
		l := &lab.Lab{Redis: &lab.Redis{}, Concurrency: 4, Size: lab.Size{Chain: 12}}
		figures, err := p.Case("chain", "program", "chain flow").Run(t.Context(), l)
		if c.says == "" {
			if want := []lab.Figure{{Name: "chain", Value: 7, Unit: "items/s"}}; err != nil || !slices.Equal(figures, want) {
				t.Errorf("%s: %v, %v", c.script, figures, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.script, err)
		}
	}
}
