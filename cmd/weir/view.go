package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/weirworks/weir/cmd/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// view is a job as other programs see it, as docs/cli.schema.json says. What is not there, or
// was not asked for, is null.
type view struct {
	ID        job.ID                     `json:"id"`
	Name      *string                    `json:"name"`
	Type      string                     `json:"type"`
	Queue     string                     `json:"queue"`
	Status    string                     `json:"status"`
	Reason    *string                    `json:"reason"`
	Parent    *string                    `json:"parent"`
	Children  any                        `json:"children"` // name to ID, or nodes in the order of their creation
	Aliases   []string                   `json:"aliases"`
	Labels    map[string]string          `json:"labels"`
	CreatedAt *time.Time                 `json:"created_at"`
	CreatedBy *string                    `json:"created_by"`
	RanAt     *time.Time                 `json:"ran_at"`
	TryCount  int                        `json:"try_count"`
	Errors    []viewError                `json:"errors"`
	State     map[string]json.RawMessage `json:"state,omitzero"` // only where it was asked for
	In        map[string]viewPort        `json:"in"`
	Out       map[string]viewPort        `json:"out"`
	Edges     []viewEdge                 `json:"edges,omitzero"` // of a graph, in a tree
}

type viewError struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
	where   string    // of a panic
}

type viewPort struct {
	Size    int64            `json:"size"`
	Default *json.RawMessage `json:"default"` // no value costs much less to encode as a pointer
	Limit   *int             `json:"limit"`
	Closed  bool             `json:"closed"`
}

// viewEdge is a wire between two children of a graph, or one of them and the graph itself.
type viewEdge struct {
	From  string `json:"from"` // "name.port"; of the graph's own In port ".port"
	To    string `json:"to"`
	Size  int64  `json:"size"`
	Limit *int   `json:"limit"`
}

// orNull is nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func limitOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// viewOf is what one Info says.
func viewOf(i *job.Info) *view {
	v := &view{
		ID: i.ID, Name: orNull(i.Name), Type: i.Type, Queue: i.Queue, Status: string(i.Status), Reason: orNull(i.Reason),
		Parent: orNull(string(i.Parent)), CreatedAt: timeOrNull(i.Created),
		CreatedBy: orNull(i.By), RanAt: timeOrNull(i.Ran), TryCount: i.Tries,
		In: map[string]viewPort{}, Out: map[string]viewPort{}, Labels: map[string]string{},
	}
	maps.Copy(v.Labels, i.Labels)
	for _, p := range i.Ports {
		into := v.In
		if p.Dir == port.Output {
			into = v.Out
		}
		q := viewPort{Size: p.Waiting, Limit: limitOrNull(p.Limit), Closed: p.Closed}
		if p.Default != nil {
			q.Default = &p.Default
		}
		into[p.Name] = q
	}
	return v
}

// fullView also asks for what an Info does not have.
func fullView(ctx context.Context, h *job.Handle) (*view, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	children, err := h.Children(ctx)
	if err != nil {
		return nil, err
	}
	d := job.Details{Children: make(map[string]job.ID, len(children))}
	for name, c := range children {
		d.Children[name] = c.ID()
	}
	if d.Aliases, err = h.Aliases(ctx); err != nil {
		return nil, err
	}
	if d.Failures, err = h.Failures(ctx); err != nil {
		return nil, err
	}
	v := viewOf(info)
	v.fill(d)
	v.State, err = explain.State(h.State(ctx))
	return v, err
}

// fill adds what an Info does not have.
func (v *view) fill(d job.Details) {
	v.Aliases, v.Children, v.Errors = append([]string{}, d.Aliases...), d.Children, []viewError{}
	for _, f := range d.Failures {
		v.Errors = append(v.Errors, viewError{f.At.UTC(), f.Error, explain.Panicked(f.Stack)})
	}
}

// treeView nests the views of a tree, whose first job is the root.
func treeView(tree []*job.Info) *view {
	if len(tree) == 0 {
		return nil
	}
	views := make(map[job.ID]*view, len(tree))
	nodes := make(map[job.ID][]*view, len(tree))
	infos := make(map[job.ID]*job.Info, len(tree))
	families := make(map[job.ID][]*job.Info) // of graphs: they and their children
	for _, i := range tree {
		views[i.ID], infos[i.ID] = viewOf(i), i
		nodes[i.Parent] = append(nodes[i.Parent], views[i.ID])
		if i.Graph {
			families[i.ID] = append(families[i.ID], i)
		}
		if up := infos[i.Parent]; up != nil && up.Graph {
			families[i.Parent] = append(families[i.Parent], i)
		}
	}
	for _, i := range tree {
		v := views[i.ID]
		v.Children = append([]*view{}, nodes[i.ID]...)
		if i.Graph {
			v.Edges = edgesOf(i, families[i.ID], infos)
		}
	}
	return views[tree[0].ID]
}

// edgesOf lists the wires inside a graph, family being the graph and its children.
func edgesOf(graph *job.Info, family []*job.Info, infos map[job.ID]*job.Info) []viewEdge {
	name := func(id job.ID) (string, bool) {
		if id == graph.ID {
			return "", true
		}
		i := infos[id]
		if i == nil {
			return "", false
		}
		return i.Name, i.Parent == graph.ID
	}
	edges := make([]viewEdge, 0, 2*len(family))
	for _, i := range family {
		from, _ := name(i.ID)
		for _, p := range i.Ports {
			if i == graph && p.Dir == port.Output {
				continue // leads out of the graph
			}
			for _, edge := range p.Edges {
				for _, end := range edge {
					to, inside := name(end.Job)
					if !inside {
						continue
					}
					q, _ := infos[end.Job].Port(end.Dir, end.Port)
					edges = append(edges, viewEdge{From: from + "." + p.Name, To: to + "." + end.Port, Size: q.Waiting, Limit: limitOrNull(q.Limit)})
				}
			}
		}
	}
	return edges
}

// outputs are the values of -o of commands that show one thing.
var outputs = []string{"table", "json", "yaml", "name"}

// show prints one thing in the format that the user wants; table prints it for people.
func (s *settings) show(c *cobra.Command, v any, name string, table func(w io.Writer) error) error {
	w := c.OutOrStdout()
	switch s.output {
	case "json":
		return encode(w, v, "  ")
	case "jsonl":
		return encode(w, v, "")
	case "yaml":
		raw, err := json.Marshal(v)
		if err == nil {
			raw, err = yaml.JSONToYAML(raw)
		}
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	case "name":
		_, err := io.WriteString(w, name+"\n")
		return err
	}
	return table(term.Plain(w))
}

// encode writes a value as JSON: in one line without indent.
func encode(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	raw := text.Bytes()
	if indent != "" {
		raw = spread(raw, indent)
	}
	_, err := w.Write(raw)
	return err
}

// spread lays JSON without white space out over lines, as json.Indent does. That checks each
// byte, which takes longer than all else that is done here for a tree of thousands of jobs.
func spread(raw []byte, indent string) []byte {
	out := make([]byte, 0, 2*len(raw))
	depth := 0
	line := func() {
		out = append(out, '\n')
		for range depth {
			out = append(out, indent...)
		}
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '"':
			end := i + 1
			for raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, raw[i:end+1]...)
			i = end
		case '{', '[':
			out = append(out, c)
			if raw[i+1] == c+2 { // the bracket that closes it
				out = append(out, c+2)
				i++
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			out = append(out, c)
		case ',':
			out = append(out, c)
			line()
		case ':':
			out = append(out, ": "...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// formats adds -o with the formats that a command knows, the first being the default.
func (s *settings) formats(c *cobra.Command, known ...string) {
	var output string
	c.Flags().StringVarP(&output, "output", "o", known[0], joined(known))
	oneOfWords(c, "output", known)
	c.PreRunE = func(*cobra.Command, []string) error {
		s.output = output
		return oneOf("output", output, known)
	}
}

// with opens the store, finds a job, and calls fn with it.
func (s *settings) with(c *cobra.Command, name string, fn func(ctx context.Context, client *job.Client, h *job.Handle) error) error {
	return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
		client := job.NewClient(store)
		h, err := client.Find(ctx, name)
		if err != nil {
			return err
		}
		return fn(ctx, client, h)
	})
}

// connected opens the store and calls fn with it.
func (s *settings) connected(c *cobra.Command, fn func(ctx context.Context, store *redisstore.Store) error) error {
	store, err := s.open(c.Context())
	if err != nil {
		return err
	}
	defer store.Close()
	return fn(c.Context(), store)
}
