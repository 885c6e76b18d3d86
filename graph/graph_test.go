package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Err knows what the calls found, Plan what the whole graph shows, too.
func TestErr(t *testing.T) {
	t.Parallel()
	g := graph.New("album")
	if err := g.Err(); err != nil {
		t.Errorf("an empty graph may still grow: %v", err)
	}
	a := graph.Add(g, "a", &Resize{})
	graph.Connect(a.Thumb, a.In)
	if err := g.Err(); err != nil {
		t.Errorf("a cycle is for Plan to find: %v", err)
	}
	graph.Add(g, "a", &Idle{})
	if err := g.Err(); !errors.Is(err, job.ErrExists) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a name taken twice: got %v", err)
	}
	_, err := g.Plan()
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), g.Err().Error()+"\n") {
		t.Errorf("Plan must report both problems, got %v", err)
	}
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string]error{
		"wrong_names":     job.ErrName,
		"wrong_instances": job.ErrExists,
		"wrong_wires":     job.ErrExists,
		"wrong_size":      job.ErrTooLarge,
	} {
		if _, err := scenarios[scenario]().Plan(); !errors.Is(err, want) {
			t.Errorf("%s: the error is no %q: %v", scenario, want, err)
		}
	}
}

// The errors of package port are passed on, a line for each thing they name.
func TestErrorsOfPort(t *testing.T) {
	t.Parallel()
	g := graph.New("album")
	list := graph.Add(g, "list", &ListDir{})
	broken := graph.Add(g, "broken", &Broken{})
	graph.Connect(list.Files, broken.In)
	graph.Export(g, "the files", list.Files)
	graph.Export(g, "*", list.Files)
	graph.Input[int](g, "a/b")
	ratio := graph.Add(g, "ratio", &Ratio{})
	ratio.Of = math.NaN()
	graph.Add(g, "loud", &Loud{})
	_, err := g.Plan()
	if !errors.Is(err, port.ErrName) || !errors.Is(err, port.ErrEncoding) {
		t.Fatal(err)
	}
	want := [][]string{
		{"album/broken: ", "field In", "limt"},
		{"album/broken: ", "field Out", "a b"},
		{"album/list.files: leads to a port.In[graph_test.Image] that belongs to no job", "; if it is one of album/broken, fix that first"},
		{`album."the files": `, `did you mean "the_files"?`},
		{`album."*": `},
		{"album.a/b: ", `did you mean "a_b"?`},
		{"album/ratio: ", "NaN"},
		{"album/loud: ", "two lines"},
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("want %d lines, got:\n%v", len(want), err)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(got[i], part) || !strings.HasPrefix(got[i], parts[0]) {
				t.Errorf("line %d lacks %q: %s", i, part, got[i])
			}
		}
	}
}

// Both graphs learn of a wire between them.
func TestTwoGraphs(t *testing.T) {
	t.Parallel()
	one, two := graph.New("one"), graph.New("two")
	list := graph.Add(one, "list", &ListDir{})
	resize := graph.Add(two, "resize", &Resize{})
	graph.Connect(list.Files, resize.In)
	for g, want := range map[*graph.Graph]string{
		one: "one/list.files: leads to two/resize.in of another graph: add both jobs to one graph",
		two: "two/resize.in: is fed by one/list.files of another graph: add both jobs to one graph",
	} {
		if err := g.Err(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Not are structs that are neither workers nor subgraphs, by what is said of them.
type (
	NotWorker   struct{ In port.In[int] }
	NotContext  struct{ In port.In[int] }
	NotSubgraph struct{ In port.In[int] }
)

func (*NotContext) Run(*worker.Run) error       { return nil }
func (*NotSubgraph) Build(*graph.Graph, string) {}

// Nothing would ever run the jobs of what is neither a worker nor a subgraph.
func TestAddRefusesWhatIsNoWorker(t *testing.T) {
	t.Parallel()
	const need = "a worker needs the method Run(context.Context, *worker.Run) error, a subgraph Build(*graph.Graph)"
	for want, add := range map[string]func(*graph.Graph){
		"it is neither a worker nor a subgraph: ":          func(g *graph.Graph) { graph.Add(g, "a", &NotWorker{}) },
		"its method Run is func(*worker.Run) error: ":      func(g *graph.Graph) { graph.Add(g, "a", &NotContext{}) },
		"its method Build is func(*graph.Graph, string): ": func(g *graph.Graph) { graph.AddWorker(g, "a", &NotSubgraph{}) },
	} {
		g := graph.New("g")
		add(g)
		_, err := g.Plan()
		if err == nil || !strings.Contains(err.Error(), "g/a: "+want) || !strings.Contains(err.Error(), need) {
			t.Errorf("got %v, want %s", err, want+need)
		}
	}
	g := graph.New("g")
	from := graph.Add(g, "from", &Hub{})
	graph.Connect(from.X, graph.Add(g, "to", &NotWorker{}).In)
	if _, err := g.Plan(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a wire to it must not be reported, too: %v", err)
	}
}

// What a caller does to a plan must not be seen in the next.
func TestPlanIsFresh(t *testing.T) {
	t.Parallel()
	g := scenarios["fan_in"]()
	plan, err := g.Plan()
	if err != nil {
		t.Fatal(err)
	}
	before := dump(plan)
	for i := range plan.Nodes {
		for j := range plan.Nodes[i].Ports {
			p := &plan.Nodes[i].Ports[j]
			p.Name, p.Sources = "changed", 9
			for k := range p.Edges {
				p.Edges[k][0].Node = 99
				p.Edges[k] = nil
			}
		}
	}
	if got := outcome(t, g); got != before {
		t.Errorf("got:\n%s\nwant:\n%s", got, before)
	}
}

// The compiler refuses each marked line of testdata/wrongtypes, and no other.
func TestWrongTypesDoNotCompile(t *testing.T) {
	t.Parallel()
	const file = "testdata/wrongtypes/main.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]bool)
	for i, line := range strings.Split(string(source), "\n") {
		if strings.Contains(line, "// wrong: ") {
			want[fmt.Sprint(i+1)] = true
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "./testdata/wrongtypes").CombinedOutput()
	if err == nil {
		t.Fatal("it compiles")
	}
	got := make(map[string]bool)
	for _, match := range regexp.MustCompile(`main\.go:(\d+):\d+: (.*)`).FindAllStringSubmatch(string(out), -1) {
		if got[match[1]] = true; !want[match[1]] {
			t.Errorf("line %s should compile: %s", match[1], match[2])
		}
		if !strings.Contains(match[2], "does not match inferred type port.") {
			t.Errorf("line %s is refused for another reason than its types: %s", match[1], match[2])
		}
	}
	for line := range want {
		if !got[line] {
			t.Errorf("line %s compiles; the compiler said:\n%s", line, out)
		}
	}
}

// Counted counts how often a job of it is described.
type Counted struct {
	In        port.In[int]
	described *atomic.Int32
}

func (*Counted) Run(context.Context, *worker.Run) error { return nil }

// SilentStatus implements job.StatusHider.
func (c *Counted) SilentStatus() bool { return c.described.Add(1) > 0 }

// A plan describes each worker once, however many instances it has; one graph can be planned by several
// goroutines at a time.
func TestPlanDescribesOnce(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	var described atomic.Int32
	graph.Add(g, "a", &Counted{described: &described}, graph.Instances(3))
	graph.Add(g, "b", &Counted{described: &described})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			plan, err := g.Plan()
			if err != nil || len(plan.Nodes) != 5 || !plan.Nodes[3].Silent || plan.Nodes[3].Type != "Counted" {
				t.Errorf("got %+v, %v", plan, err)
			}
		})
	}
	if wg.Wait(); described.Load() != 4*2 {
		t.Errorf("4 plans of 2 workers have described workers %d times", described.Load())
	}
}
