package metrics_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNobodyElseLinks: who does not import a package of telemetry has no library of it in his program.
func TestNobodyElseLinks(t *testing.T) {
	t.Parallel()
	module := "github.com/weirworks/weir/"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"worker", module+"redisstore", module+"api", module+"component", module+"graphfile", module+"weirtest")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), module+"worker\n") {
		t.Fatalf("go list says:\n%s", out)
	}
	for dep := range strings.Lines(string(out)) {
		if strings.Contains(dep, "prometheus") || strings.Contains(dep, "opentelemetry") || strings.Contains(dep, module+"telemetry") {
			t.Errorf("linked: %s", dep)
		}
	}
}
