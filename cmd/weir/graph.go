package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// graphFlags say how a graph file is to be read, and what its jobs may do.
type graphFlags struct {
	params  []string
	name    string // of a graph whose file has none; empty: that of the file
	root    string
	noFiles bool // unless there is a root
	exec    []string
	private bool
	assume  bool // parameters without value have one that fits: the graph is not run
}

// paramHelp is what the help says of --param.
const paramHelp = "value of a parameter of the graph, `NAME=VALUE`: JSON, or else a text"

func (f *graphFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.params, "param", nil, paramHelp)
	f.addPolicy(c)
}

// addPolicy adds what jobs may do.
func (f *graphFlags) addPolicy(c *cobra.Command) {
	c.Flags().StringVar(&f.root, "root", "", "directory `DIR` below which jobs may read and write files (default the current one)")
	c.Flags().StringArrayVar(&f.exec, "allow-exec", nil, "`PROGRAM` that jobs may run")
	c.Flags().BoolVar(&f.private, "allow-private-http", false, "let jobs ask HTTP servers in private networks")
}

// checkRoot refuses a --root that is no directory.
func (f *graphFlags) checkRoot() error {
	if f.root == "" {
		return nil
	}
	info, err := os.Stat(f.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError{fmt.Errorf("--root %s: there is no such directory", f.root)}
	case err != nil:
		return usageError{fmt.Errorf("--root %s: %w", f.root, err)}
	case !info.IsDir():
		return usageError{fmt.Errorf("--root %s: it is a file: give a directory", f.root)}
	}
	return nil
}

// workerOf is the command of a worker of a queue whose jobs may do what the flags say, started anywhere.
func (f *graphFlags) workerOf(queue string) string {
	words := []string{"weir", "worker", "--queue", queue}
	if root, err := filepath.Abs(f.root); err == nil {
		words = append(words, "--root", shellWord(root))
	}
	for _, program := range f.exec {
		words = append(words, "--allow-exec", shellWord(program))
	}
	if f.private {
		words = append(words, "--allow-private-http")
	}
	return strings.Join(words, " ")
}

// shellWord is a text as a shell takes it for one word.
func shellWord(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-:=,@%+", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return shellQuoted(s)
}

// shellQuoted is a text in quotes, as a shell takes it for one word.
func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (f *graphFlags) workers() []worker.Worker {
	return append(component.All(component.Policy{Root: f.root, NoFiles: f.noFiles && f.root == "", Programs: f.exec, HTTP: f.http()}), trigger.New())
}

// http is which servers jobs may ask.
func (f *graphFlags) http() component.HTTPPolicy {
	return component.HTTPPolicy{AllowPrivate: f.private}
}

// values are those of the parameters, by name.
func (f *graphFlags) values() (map[string]json.RawMessage, error) {
	params := make(map[string]json.RawMessage)
	for _, p := range f.params {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--param %q: write it as NAME=VALUE", p)}
		}
		var err error
		if params[key], err = value2json(value); err != nil {
			return nil, usageError{fmt.Errorf("--param %s: %w", key, err)}
		}
	}
	return params, nil
}

// load reads a graph file and makes a graph of it, of components and of more types, if there are any.
func (f *graphFlags) load(name string, more ...any) (*graph.Graph, error) {
	if err := f.checkRoot(); err != nil {
		return nil, err
	}
	file, err := parseDraft(name)
	if err != nil {
		return nil, err
	}
	return f.build(name, file, more)
}

// build makes a graph of what a file says.
func (f *graphFlags) build(name string, file *graphfile.File, more []any) (*graph.Graph, error) {
	params, err := f.values()
	if err != nil {
		return nil, err
	}
	known := more
	for _, w := range f.workers() { // these count where both have a type
		known = append(known, w)
	}
	if file.Name == "" {
		file.Name = cmp.Or(f.name, graphName(name))
	}
	if f.assume {
		assume(file, params)
	}
	g, err := file.Build(known, params)
	if err != nil {
		return nil, fileError{err}
	}
	return g, nil
}

// loadKnown is load with the types that handlers and other programs have registered, which are looked up only if the file names some.
func (f *graphFlags) loadKnown(c *cobra.Command, s *settings, name string) (*graph.Graph, error) {
	if err := f.checkRoot(); err != nil {
		return nil, err
	}
	file, err := parseDraft(name)
	if err != nil {
		return nil, err
	}
	g, err := f.build(name, file, nil)
	at := slices.IndexFunc(graphfile.Problems(err), func(p *graphfile.Problem) bool { return strings.HasSuffix(p.Path, ".type") })
	if at < 0 {
		return g, err
	}
	e, resolved := s.resolve()
	if resolved != nil {
		return nil, resolved
	}
	if e.redis.Value == "" && e.server.Value == "" {
		if !strings.Contains(graphfile.Problems(err)[at].Text, "did you mean") {
			_, failed := fmt.Fprintln(c.ErrOrStderr(), "weir: types of handlers and of other programs are known only with --redis or --server")
			err = errors.Join(err, failed)
		}
		return nil, err
	}
	store, err := s.reach(c.Context())
	if err != nil {
		return nil, err
	}
	others, err := registered(c.Context(), store)
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	return f.build(name, file, others)
}

// registered are the types that programs have registered in a store.
func registered(ctx context.Context, store storecall.Store) ([]any, error) {
	types, err := store.Types(ctx)
	if err != nil {
		return nil, err
	}
	others := make([]any, len(types))
	for i := range types {
		if others[i], err = job.NewRegistered(&types[i], nil); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// assume gives parameters that must be given and are not a value of their type.
func assume(file *graphfile.File, params map[string]json.RawMessage) {
	values := map[string]string{graphfile.TypeString: `"x"`, graphfile.TypeInt: "1", graphfile.TypeNumber: "1", graphfile.TypeBool: "true"}
	for _, p := range file.Params {
		if _, given := params[p.Name]; given || p.Default != nil {
			continue
		}
		params[p.Name] = json.RawMessage(cmp.Or(values[p.Type], "null"))
	}
}

// fileError is what is wrong with a file; it may have several lines.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// parseFile reads a graph file with which nothing is wrong.
func parseFile(name string) (*graphfile.File, error) {
	file, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// parseDraft is parseFile for what is built then, which tells what is wrong with the text, too. There is an error only if it cannot be read.
func parseDraft(name string) (*graphfile.File, error) {
	file, err := readFile(name)
	if file == nil {
		return nil, err
	}
	return file, nil
}

// readFile reads a graph file, as far as it can be read.
func readFile(name string) (*graphfile.File, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, graphfile.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	source := name
	if name == "-" {
		source = "stdin.yaml"
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			source = "stdin.json"
		}
	}
	file, err := graphfile.ParseDraft(source, data)
	if err != nil {
		err = fileError{err}
	}
	return file, err
}

// graphName makes a name of the name of a file.
func graphName(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, base)
	if name == "" {
		return "graph"
	}
	return name
}

// value2json takes JSON as it is and everything else as a text.
func value2json(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not valid UTF-8")
	}
	return port.Encode(text)
}

func newGraph(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "graph",
		Short:   "Draw and convert graphs, and tell what their files can say",
		Example: "  weir graph draw logs.yaml\n  weir graph convert logs.fbp -o yaml",
	}
	c.AddCommand(s.completeFile(newDraw(s)), newConvert(), newSchema())
	return c
}

func newDraw(s *settings) *cobra.Command {
	f := graphFlags{assume: true}
	var format string
	c := &cobra.Command{
		Use:   "draw FILE|JOB",
		Short: "Draw a graph file, or a tree of running jobs",
		Long: `Draw a graph file, or the tree that a job belongs to with its statuses and the
messages that wait on each wire, with --watch again and again. A JOB is an ID, the beginning of
one, or an alias. A picture that is wider than the terminal is written as a list of its jobs.
Behind a pipe it gets as wide as it needs, unless the variable COLUMNS says how wide it may be.`,
		Example: "  weir graph draw logs.yaml\n  weir graph draw logs.yaml --format svg > logs.svg\n  weir graph draw album-2026 --redis redis://localhost:6379",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := picture(c, s, &f, args[0])
			if err != nil {
				return err
			}
			style := term.StyleOf(c.OutOrStdout())
			return draw.Write(c.OutOrStdout(), p, format, draw.Options{
				Terminal: draw.TerminalOptions{Width: style.Width, Color: style.Color, ASCII: style.ASCII},
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&format, "format", "terminal", strings.Join(draw.Formats(), ", "))
	oneOfWords(c, "format", draw.Formats())
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("format", format, draw.Formats()) }
	return watched(c, func() bool { return format == "terminal" })
}

// picture is that of a graph file, or of a job.
func picture(c *cobra.Command, s *settings, f *graphFlags, name string) (draw.Picture, error) {
	if isGraphFile(name) {
		g, err := f.loadKnown(c, s, name)
		if err != nil {
			return draw.Picture{}, err
		}
		plan, err := g.Plan()
		if err != nil {
			return draw.Picture{}, fileError{err}
		}
		return draw.Plan(plan), nil
	}
	store, err := s.reach(c.Context())
	if err != nil {
		return draw.Picture{}, err
	}
	defer store.Close()
	h, err := find(c.Context(), client.New(store), name)
	if err != nil {
		return draw.Picture{}, notGraph(name, err)
	}
	tree, err := h.Tree(c.Context())
	return draw.Jobs(tree), err
}

// isGraphFile tells by its name alone whether something is a graph file, so that no file takes the place of a job.
func isGraphFile(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json", ".fbp":
		return true
	}
	return name == "-"
}

// notGraph adds to the error that a job was not found that there is a file of that name, which is no graph file by its name.
func notGraph(name string, err error) error {
	if !errors.Is(err, job.ErrNotFound) {
		return err
	}
	if info, statErr := os.Stat(name); statErr != nil || !info.Mode().IsRegular() {
		return err
	}
	return fmt.Errorf("%w; the name of a graph file ends in .yaml, .yml, .json or .fbp, so the file %s is none", err, name)
}

func newConvert() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a graph file in another format",
		Long: `Write a graph file in another format: yaml or json (Weir's own), fbp (the language of
flow-based programming tools) or noflo (their JSON). What a format cannot say is an error.`,
		Example: "  weir graph convert logs.fbp -o yaml > logs.yaml\n  weir graph convert logs.yaml -o noflo",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := parseFile(args[0])
			if err != nil {
				return err
			}
			text, err := converted(file, format)
			if err != nil {
				return fileError{err}
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	formats := []string{"yaml", "json", "fbp", "noflo"}
	c.Flags().StringVarP(&format, "output", "o", "yaml", strings.Join(formats, ", "))
	oneOfWords(c, "output", formats)
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("output", format, formats) }
	return c
}

func converted(file *graphfile.File, format string) (string, error) {
	switch format {
	case "json":
		raw, err := file.JSON()
		return string(raw), err
	case "noflo":
		raw, err := file.NoFlo()
		return string(raw), err
	case "fbp":
		return file.FBP()
	}
	return file.YAML()
}

// oneOf refuses the value of a flag that is none of the known ones.
func oneOf(flag, value string, known []string) error {
	for _, k := range known {
		if k == value {
			return nil
		}
	}
	return usageError{fmt.Errorf("unknown %s %q: use %s", flag, value, strings.Join(known, ", "))}
}
