package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// graphOperations are those on graphs.
func (s *Server) graphOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/graphs/check", id: "check-graph", group: groupGraphs, role: read, summary: "Tell what is wrong with a graph",
		about: "A graph that is wrong is 422, with each problem and its line in `errors`. The body may be that of POST /v1/graphs.",
	}, func(ctx context.Context, s *session, in *struct{ Body NewGraph }) (*reply[Checked], error) {
		_, plan, err := s.build(ctx, in.Body.GraphText)
		if err != nil {
			return nil, err
		}
		if _, err := in.Body.options(); err != nil {
			return nil, err
		}
		return answer(Checked{Name: plan.Nodes[0].Name, Jobs: len(plan.Nodes) - 1, Inputs: portsOf(plan, port.Input), Outputs: portsOf(plan, port.Output)}, nil)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/graphs", id: "start-graph", group: groupGraphs, role: operate, status: http.StatusCreated, summary: "Start a graph",
		about: "With an alias that exists already nothing is started: if the graph there has the same definition the answer is 200 and that one, else `existing` says what to do. So a request may be repeated. " +
			"With `unique` and a graph that is the same work nothing is started, either: 200, and that graph.",
	}, startGraph)
	add(s, operation{
		method: http.MethodPost, path: "/v1/graphs/draw", id: "draw-graph", group: groupGraphs, role: read, summary: "Draw a graph",
	}, func(ctx context.Context, s *session, in *struct {
		Format string `query:"format" default:"svg" enum:"svg,mermaid,dot,terminal"`
		Body   GraphText
	},
	) (*picture, error) {
		_, plan, err := s.build(ctx, in.Body)
		if err != nil {
			return nil, err
		}
		return drawn(draw.Plan(plan), in.Format)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/picture", id: "draw-job", group: groupGraphs, role: read, summary: "Draw the tree of a job, with statuses and what waits on each wire",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Format string `query:"format" default:"svg" enum:"svg,mermaid,dot,terminal"`
	},
	) (*picture, error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		tree, err := h.Tree(ctx)
		if err != nil {
			return nil, err
		}
		return drawn(draw.Jobs(tree), in.Format)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/graphs/params", id: "graph-params", group: groupGraphs, role: read, summary: "Tell which parameters a graph has, as a JSON Schema",
		about: "Of a graph in Weir's own form; others have none. What is wrong with the graph besides is told by check.",
	}, func(_ context.Context, _ *session, in *struct{ Body GraphText }) (*reply[json.RawMessage], error) {
		file, err := in.Body.file()
		if err != nil {
			return nil, err
		}
		if err := file.Check(); err != nil {
			return nil, err
		}
		return answer(paramsSchema(file))
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/patch/diff", id: "diff-graph", group: groupGraphs, role: read, summary: "Tell what a patch of a graph would change",
		about: "Nothing is changed. What can never be patched is refused as by patch-graph; a job that goes must be idle and empty when the patch is made.",
	}, diffGraph)
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/patch", id: "patch-graph", group: groupGraphs, role: operate, status: http.StatusNoContent, summary: "Change a running graph into another one of the same name",
		about: "Jobs with the same path of names stay, with their messages and state; all or nothing.",
	}, patchGraph)
}

// newGraph is a request to change a graph that runs into another one.
type newGraph struct {
	JobPath
	Body GraphText
}

func diffGraph(ctx context.Context, s *session, in *newGraph) (*reply[Difference], error) {
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	g, _, err := s.build(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	d, err := h.Diff(ctx, g)
	if err != nil {
		return nil, err
	}
	return answer(DifferenceOf(d), nil)
}

func patchGraph(ctx context.Context, s *session, in *newGraph) (*nothing, error) {
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	g, _, err := s.build(ctx, in.Body)
	if err == nil {
		err = h.Patch(s.acting(ctx), g)
	}
	return done(err)
}

// GraphText is a graph as a text.
type GraphText struct {
	Graph  json.RawMessage            `json:"graph" doc:"the graph: an object, as weir graph schema describes it, or a string with a text in the given format"`
	Format string                     `json:"format,omitempty" doc:"of a graph that is a string: yaml (the default), json or fbp"`
	Params map[string]json.RawMessage `json:"params,omitempty" doc:"values of the parameters of the graph"`
}

// file reads the text of a graph.
func (t *GraphText) file() (*graphfile.File, error) {
	text, ext := []byte(t.Graph), ".json"
	switch {
	case len(t.Graph) == 0:
		return nil, wrong("graph is missing: send it as an object, or as a string")
	case t.Graph[0] == '"':
		var plain string
		if err := json.Unmarshal(t.Graph, &plain); err != nil {
			return nil, malformed("graph: %v", err)
		}
		if t.Format == "" {
			t.Format = "yaml"
		}
		if known := []string{"yaml", "json", "fbp"}; !slices.Contains(known, t.Format) {
			return nil, wrong("format %.40q: %s", t.Format, port.Suggest(t.Format, known))
		}
		text, ext = []byte(plain), "."+t.Format
	case !bytes.HasPrefix(t.Graph, []byte("{")):
		return nil, wrong("graph: use an object, or a string")
	}
	file, err := graphfile.ParseDraft("graph"+ext, text)
	if file == nil {
		return nil, err
	}
	return file, nil // what is wrong with it is told with all else, by Build
}

// build makes a graph of a text.
func (s *session) build(ctx context.Context, t GraphText) (*graph.Graph, *job.Plan, error) {
	file, err := t.file()
	if err != nil {
		return nil, nil, err
	}
	if file.Name == "" {
		file.Name = "graph"
	}
	known, err := s.prototypes(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, err := file.Build(known, t.Params)
	if err != nil {
		return nil, nil, err
	}
	plan, err := g.Plan()
	return g, plan, err
}

// prototypes are those of the types that the server knows, and of the others that are registered.
func (s *session) prototypes(ctx context.Context) ([]any, error) {
	types, err := s.client.Types(ctx)
	if err != nil {
		return nil, err
	}
	var all []any
	for i := range types {
		w, err := job.NewRegistered(&types[i], nil)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return append(all, s.cfg.Prototypes...), nil // which count where both have a type
}

// Checked is what a graph is.
type Checked struct {
	Name    string   `json:"name"`
	Jobs    int      `json:"jobs"`
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
}

func portsOf(plan *job.Plan, dir port.Dir) []string {
	names := []string{}
	for _, p := range plan.Nodes[0].Ports {
		if p.Dir == dir {
			names = append(names, p.Name)
		}
	}
	return names
}

// NewGraph describes a graph that is to be started.
type NewGraph struct {
	GraphText
	Alias         *string           `json:"alias,omitempty" doc:"a name that is unique in the namespace"`
	Labels        map[string]string `json:"labels,omitempty"`
	Retain        string            `json:"retain,omitempty" doc:"for how long the tree is kept after it has settled, like 12h or 7d, or forever"`
	SequentialKey *string           `json:"sequential_key,omitempty" maxLength:"128" doc:"of the trees with one key one is active at a time, in the order of their creation; the others wait"`
	Unique        *NewUnique        `json:"unique,omitempty" doc:"start the graph unless one that is the same work is there, and answer with that one; {} is enough. It does not go with alias"`
	Existing      string            `json:"existing,omitempty" doc:"of another graph under the alias: refuse (the default), take or patch"`
}

type started struct {
	Status   int
	Location string `header:"Location"`
	Body     *Job
}

// startInput is a graph that is to be started, once for a key.
type startInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour starts nothing more, and answers with the same graph"`
	Body NewGraph
}

// options are what a request asks for besides the graph.
func (g *NewGraph) options() ([]job.Option, error) {
	var opts []job.Option
	switch alias, err := textOf("alias", g.Alias); {
	case err != nil:
		return nil, err
	case alias != "":
		if err := job.CheckAlias(alias); err != nil {
			return nil, err
		}
		opts = append(opts, job.Alias(alias))
	}
	if err := job.CheckLabels(g.Labels); err != nil {
		return nil, err
	}
	for key, value := range g.Labels {
		opts = append(opts, job.Label(key, value))
	}
	if g.Retain != "" {
		d, err := job.ParseRetention(g.Retain)
		if err != nil {
			return nil, err
		}
		opts = append(opts, job.Retain(d))
	}
	if g.SequentialKey != nil {
		key, err := textOf("sequential_key", g.SequentialKey)
		if err != nil {
			return nil, err
		}
		opts = append(opts, job.SequentialKey(key))
	}
	by, err := g.Unique.by()
	if err != nil {
		return nil, err
	}
	if by != nil {
		opts = append(opts, job.Unique(*by))
	}
	switch g.Existing {
	case "", "refuse":
	case "take":
		opts = append(opts, job.TakeExisting())
	case "patch":
		opts = append(opts, job.PatchExisting())
	default:
		return nil, wrong("existing %.40q: %s", g.Existing, port.Suggest(g.Existing, []string{"refuse", "take", "patch"}))
	}
	return opts, nil
}

func startGraph(ctx context.Context, s *session, in *startInput) (*started, error) {
	b := in.Body
	g, _, err := s.build(ctx, b.GraphText)
	if err != nil {
		return nil, err
	}
	opts, err := b.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, job.By(s.principal.Name))
	if in.Key != "" {
		opts = append(opts, job.Key(in.Key))
	}
	var h *client.Handle
	if err := s.once(ctx, "start", in.Key, b, func() (err error) {
		h, err = s.client.Start(ctx, g, opts...)
		return err
	}); err != nil {
		return nil, advised(err)
	}
	v, err := FullJob(ctx, h)
	if err != nil {
		return nil, err
	}
	v.Outcome = Outcome(h)
	out := &started{Status: http.StatusCreated, Location: "/v1/jobs/" + string(h.ID()), Body: v}
	if !h.Created() {
		out.Status = http.StatusOK
	}
	return out, nil
}

// advised is an error of a start with advice for a request in place of that for Go programs.
func advised(err error) error {
	if !errors.As(err, new(*client.AdvisedError)) {
		return err
	}
	return problem(KindOf(err), "%s", client.Advised(err, `"existing": "take"`, `"existing": "patch"`, "; start its engine first"))
}

// picture is an answer that is drawn.
type picture struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func drawn(p draw.Picture, format string) (*picture, error) {
	var b bytes.Buffer
	if err := draw.Write(&b, p, format, draw.Options{}); err != nil {
		return nil, err
	}
	kind := "text/plain; charset=utf-8"
	if format == "svg" {
		kind = "image/svg+xml"
	}
	return &picture{kind, b.Bytes()}, nil
}
