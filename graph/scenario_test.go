package graph_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// scenarios are graphs whose plan, or else whose problems, are in the file of the
// same name in testdata.
var scenarios = map[string]func() *graph.Graph{
	"chain": func() *graph.Graph {
		g := graph.New("album")
		list := graph.Add(g, "list", &ListDir{Dir: "photos"})
		resize := graph.Add(g, "resize", &Resize{}, graph.Queue("slow"))
		pack := graph.Add(g, "pack", &Pack{})
		graph.Connect(resize.Thumb, pack.Images)
		graph.Connect(list.Files, resize.In)
		return g
	},
	"fan_out": func() *graph.Graph {
		g := graph.New("album")
		list := graph.Add(g, "list", &ListDir{})
		graph.Connect(list.Files, graph.Add(g, "small", &Resize{}).In)
		graph.Connect(list.Files, graph.Add(g, "large", &Resize{}).In)
		graph.Connect(list.Files, graph.Add(g, "pack", &Pack{}, graph.Instances(2)).Images)
		return g
	},
	"fan_in": func() *graph.Graph {
		g := graph.New("album")
		pack := graph.Add(g, "pack", &Pack{})
		for i := range 3 {
			list := graph.Add(g, fmt.Sprintf("list%d", i), &ListDir{}, graph.Instances(i+1))
			graph.Connect(list.Files, pack.Images)
		}
		return g
	},
	"instances": func() *graph.Graph {
		g := graph.New("album")
		list := graph.Add(g, "list", &ListDir{Dir: "photos"}, graph.Instances(2))
		resize := graph.Add(g, "resize", &Resize{}, graph.Instances(3))
		graph.Connect(list.Files, resize.In)
		return g
	},
	"export": func() *graph.Graph {
		g := graph.New("album")
		list := graph.Add(g, "list", &ListDir{})
		resize := graph.Add(g, "resize", &Resize{}, graph.Instances(3))
		graph.Connect(list.Files, resize.In)
		graph.Export(g, "thumbs", resize.Thumb)
		graph.Export(g, "previews", resize.Thumb)
		graph.Export(g, "originals", list.Files)
		return g
	},
	"input": func() *graph.Graph {
		g := graph.New("album")
		photos := graph.Input[Image](g, "photos")
		resize := graph.Add(g, "resize", &Resize{}, graph.Instances(2))
		pack := graph.Add(g, "pack", &Pack{})
		graph.Connect(photos, resize.In)
		graph.Connect(photos, pack.Images)
		graph.Connect(resize.Thumb, pack.Images)
		graph.Connect(graph.Input[string](g, "names"), pack.Names)
		graph.Export(g, "photos", photos)
		return g
	},
	"shapes": func() *graph.Graph {
		g := graph.New("shapes")
		graph.Add(g, "idle", &Idle{})
		graph.Add(g, "idle2", &Idle{}, graph.Instances(1), graph.Queue(""))
		graph.Add(g, "typed", &Typed{})
		late := graph.Add(g, "late", &ListDir{})
		late.Dir = "set after Add"
		return g
	},
	"wrong_nothing": func() *graph.Graph { return graph.New("album") },
	"wrong_names": func() *graph.Graph {
		g := graph.New("my album\n")
		list := graph.Add(g, "list", &ListDir{}, graph.Queue("slow lane"))
		graph.Add(g, "", &Idle{})
		graph.Add(g, "größe", &Idle{})
		graph.Add(g, "list", &Idle{})
		graph.Add(g, "list2", &Idle{})
		graph.Add(g, "list", &Resize{})
		graph.Add(g, strings.Repeat("x", 129), &Idle{})
		graph.Export(g, "files", list.Files)
		graph.Export(g, "files", list.Files)
		in := graph.Input[string](g, "files")
		graph.Connect(in, graph.Add(g, "pack", &Pack{}).Names)
		graph.Input[string](g, "files")
		return g
	},
	"wrong_instances": func() *graph.Graph {
		g := graph.New("album")
		graph.Add(g, "none", &Idle{}, graph.Instances(0))
		graph.Add(g, "fewer", &Idle{}, graph.Instances(-3))
		graph.Add(g, "list", &ListDir{}, graph.Instances(12))
		graph.Add(g, "list_7", &Idle{})
		graph.Add(g, strings.Repeat("x", 126), &Idle{}, graph.Instances(10))
		return g
	},
	"wrong_size": func() *graph.Graph {
		g := graph.New("album")
		graph.Add(g, "a", &Idle{}, graph.Instances(16000))
		graph.Add(g, "b", &Idle{}, graph.Instances(4000))
		return g
	},
	"wrong_overflow": func() *graph.Graph {
		g := graph.New("album")
		graph.Add(g, "a", &Idle{}, graph.Instances(1<<62))
		graph.Add(g, "b", &Idle{}, graph.Instances(1<<62))
		return g
	},
	"wrong_workers": func() *graph.Graph {
		g := graph.New("album")
		list := graph.Add[ListDir](g, "nil", nil)
		resize := &Resize{}
		graph.Add(g, "resize", resize)
		graph.Add(g, "again", resize)
		graph.Connect(list.Files, resize.In)
		graph.Add(g, "number", new(int))
		nameless := graph.Add(g, "nameless", &struct{ In port.In[Image] }{})
		graph.Connect(list.Files, nameless.In)
		return g
	},
	"wrong_policies": func() *graph.Graph {
		g, sub := graph.New("album"), graph.New("sub")
		graph.Add(sub, "idle", &Idle{})
		graph.Nest(g, "again", sub, graph.OnFailure(job.Restart))
		graph.Nest(g, "letters", sub, graph.OnFailure(job.DeadLetter))
		graph.Add(g, "own", &Moaner{}, graph.OnFailure(job.DeadLetter))
		return g
	},
	"wrong_wires": func() *graph.Graph {
		g, other := graph.New("album"), graph.New("other")
		list := graph.Add(g, "list", &ListDir{})
		resize := graph.Add(g, "resize", &Resize{})
		pack := graph.Add(other, "pack", &Pack{})
		graph.Connect(list.Files, resize.In)
		graph.Connect(list.Files, resize.In)
		graph.Connect(list.Files, pack.Images)
		graph.Connect(graph.Input[Image](other, "photos"), resize.In)
		graph.Export(g, "zip", pack.Zip)
		graph.Input[Image](g, "unused")
		lost := &Resize{}
		graph.Connect(lost.Thumb, resize.In)
		graph.Connect(resize.Thumb, lost.In)
		graph.Connect(graph.Input[int](g, "widths"), lost.Width)
		graph.Export(g, "thumbs", lost.Thumb)
		graph.Connect(lost.Thumb, lost.In) // nobody to tell
		graph.Add(g, "late", lost)
		return g
	},
	"wrong_cycles": func() *graph.Graph {
		g := graph.New("album")
		var all []*Resize
		for _, name := range []string{"self", "a", "b", "c", "d", "after"} {
			all = append(all, graph.Add(g, name, &Resize{}))
		}
		for _, edge := range [][2]int{{0, 0}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 3}, {4, 5}, {1, 5}} {
			graph.Connect(all[edge[0]].Thumb, all[edge[1]].In)
		}
		graph.Connect(graph.Input[Image](g, "photos"), all[1].In)
		graph.Export(g, "thumbs", all[5].Thumb)
		return g
	},
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".txt"); scenarios[name] == nil {
			t.Errorf("%s is the file of no scenario", file)
		}
	}
	for name, build := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", name+".txt")
			got := outcome(t, build())
			if strings.HasPrefix(name, "wrong_") != strings.HasPrefix(got, "wrong:") {
				t.Errorf("%s", got)
			}
			golden.Check(t, file, got)
		})
	}
}

// outcome plans the graph and shows what comes of it.
func outcome(t *testing.T, g *graph.Graph) string {
	t.Helper()
	plan, err := g.Plan()
	if err != nil {
		return fmt.Sprintf("wrong:\n%v\n", err)
	}
	if err := g.Err(); err != nil {
		t.Errorf("planned all the same: %v", err)
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
	again, err := g.Plan()
	if err != nil || dump(again) != dump(plan) {
		t.Errorf("the second plan is not like the first: %v", err)
	}
	return dump(plan)
}

// dump shows all that a plan says: a job a line, below it its ports.
func dump(plan *job.Plan) string {
	var b strings.Builder
	for i, n := range plan.Nodes {
		fmt.Fprintf(&b, "%d %s: type %s", i, n.Name, n.Type)
		if n.Graph {
			b.WriteString(", graph")
		}
		if i > 0 {
			fmt.Fprintf(&b, ", parent %d", n.Parent)
		}
		if n.Queue != "" {
			fmt.Fprintf(&b, ", queue %s", n.Queue)
		}
		if n.Args != nil {
			fmt.Fprintf(&b, ", args %s", n.Args)
		}
		b.WriteByte('\n')
		for _, p := range n.Ports {
			fmt.Fprintf(&b, "    %v %s %s", p.Dir, p.Name, p.Type)
			if p.Limit > 0 {
				fmt.Fprintf(&b, ", limit %d", p.Limit)
			}
			if p.Default != nil {
				fmt.Fprintf(&b, ", default %s", p.Default)
			}
			if p.Sources > 0 {
				fmt.Fprintf(&b, ", sources %d", p.Sources)
			}
			b.WriteByte('\n')
			for _, e := range p.Edges {
				b.WriteString("        ->")
				for _, to := range e {
					fmt.Fprintf(&b, " %d.%v.%s", to.Node, to.Dir, to.Port)
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}
