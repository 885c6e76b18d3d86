package metrics_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/metrics"
)

// TestAlerts: Prometheus' own tool accepts the rules, their own tests hold, and they use metrics that there are.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "../../deploy/alerts.yml")
	promtool(t, "", "test", "rules", "../../deploy/alerts_test.yml")
	uses(t, "alerts.yml")
}

// dashboard is what the test looks at of a Grafana dashboard.
type dashboard struct {
	UID    string
	Title  string
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr string }
	}
}

// TestDashboard: the dashboard can be imported, no two panels lie on each other, Prometheus understands all its queries, and they use metrics that
// there are.
func TestDashboard(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../deploy/grafana-dashboard.json")
	enginetest.Check(t, err)
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil || d.UID == "" || d.Title == "" {
		t.Fatalf("error %v, UID %q, title %q", err, d.UID, d.Title)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	fill := strings.NewReplacer("$__rate_interval", "5m", "$namespace", "main")
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d, %q: it has no title, no queries or the ID of another one", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if cells[at] != "" || at[0] >= 24 {
					t.Fatalf("panels %q and %q are both at %v, or it is outside", p.Title, cells[at], at)
				}
				cells[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			name := "p" + strconv.Itoa(p.ID) + q.RefID
			rules += "  - record: " + name + "\n    expr: " + strconv.Quote(fill.Replace(q.Expr)) + "\n"
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	enginetest.Check(t, os.WriteFile(file, []byte(rules), 0o600))
	promtool(t, "", "check", "rules", file)
	uses(t, "grafana-dashboard.json")
}

// TestMetricsAreDocumented: docs/operations.md has each metric, with its help, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/operations.md")
	enginetest.Check(t, err)
	all := defined(t)
	for name, help := range all {
		if !strings.Contains(string(raw), "| `"+name+"` |") || !strings.Contains(string(raw), help) {
			t.Errorf("docs/operations.md has no line for `%s`: %s", name, help)
		}
	}
	for _, name := range metricNames.FindAllString(string(raw), -1) {
		if all[name] == "" {
			t.Errorf("docs/operations.md tells of %s, which there is not", name)
		}
	}
}

var metricNames = regexp.MustCompile(`\bweir_[a-z_]+`)

// uses fails the test if a file of deploy/ uses a metric that there is not.
func uses(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/" + file)
	enginetest.Check(t, err)
	all := defined(t)
	for _, name := range metricNames.FindAllString(string(raw), -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); all[base] != "" {
				name = base
			}
		}
		if all[name] == "" {
			t.Errorf("%s uses %s, which there is not: %v", file, name, slices.Sorted(maps.Keys(all)))
		}
	}
}

var descText = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)"`)

// defined returns the help of all metrics.
func defined(t *testing.T) map[string]string {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.StartMini(t).URL()})
	descs, all := make(chan *prometheus.Desc, 1000), map[string]string{}
	metrics.New(store).Registry().Describe(descs)
	close(descs)
	for d := range descs {
		m := descText.FindStringSubmatch(d.String())
		all[m[1]] = m[2]
	}
	if len(all) < 30 {
		t.Fatalf("only %d metrics: %v", len(all), all)
	}
	return all
}
