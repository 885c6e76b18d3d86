//go:build unix

package component_test

import (
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/job"
)

// The policy names the programs.
func ExampleExec() {
	show(component.Policy{Programs: []string{"tr"}}, job.Single(&component.Exec{
		Program: "tr", Args: []string{"a-z", "A-Z"}, Input: component.AsText,
	}, ""), messages{"in": {"wren", "swan"}})
	// Output: out: "WREN" "SWAN"
}
