package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// runFlags are those of weir run.
type runFlags struct {
	graphFlags
	wakeFlags
	in      []string
	asText  bool // of all of in
	timeout time.Duration
	picture bool
}

func newRun(s *settings) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [FILE|JOB]",
		Short: "Run a graph of components from a file, or ask for a run of a job",
		Long: `Run a graph of components from a file until it is completed, and print what it writes
to its outputs. Without --redis the jobs live in this process. With it they are kept in
that Redis, and the ID of the graph is printed on standard error. With --server the graph is
started on that server, whose engines and workers run it: --root, --allow-exec and
--allow-private-http are theirs.

Only this process runs the graph's components, so that its --root, --allow-exec and
--allow-private-http hold: they are in a queue of their own, whatever queues the file names.
Jobs of types that other programs have registered are run by those. After an interruption the
command that goes on with them is printed, and weir why tells it, too: a weir worker of that
queue. The first Ctrl-C lets runs in progress finish for ten seconds; a second one stops at
once.

--in PORT=VALUE sends one message, PORT=@FILE the lines of a file, PORT=- those of
standard input. Values and lines are JSON; with --text they are strings. Then all inputs are
closed.

What is no graph file (.yaml, .yml, .json, .fbp or -) is a JOB: an ID, the beginning of
one, or an alias. It gets a run that begins after this command, whatever it waits for.` + bulkHelp,
		Example: "  weir run logs.yaml --in lines=@access.log --text\n  weir run sum.yaml --in n=5 --in n=6 -o json\n  weir run report-2026 --after 10m\n  weir run --type report --status completed",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return f.wake(c, s, args)
			case !isGraphFile(args[0]):
				return notGraph(args[0], f.wake(c, s, args))
			}
			return f.run(c, s, args[0])
		},
	}
	f.add(c)
	c.Flags().StringArrayVar(&f.in, "in", nil, "message for an input of the graph, `PORT=VALUE|@FILE|-`")
	c.Flags().BoolVar(&f.asText, "text", false, "--in: "+textHelp)
	spanVar(c.Flags(), &f.timeout, "timeout", 0, "give up after this time, like 30s (default: never)")
	c.Flags().BoolVar(&f.picture, "draw", false, "draw the jobs at the end, on standard error")
	c.Flags().BoolVar(&f.force, "force", false, "of a job: also if it failed or is terminated")
	spanVar(c.Flags(), &f.after, "after", 0, "of a job: after this time, like 10m")
	f.flags(s, c)
	c.Flags().Lookup("output").Usage = "`FORMAT`: table, json, or, of jobs, name"
	c.Flags().Lookup("label").Usage = "of a graph: a label of it, `KEY=VALUE`; else jobs with this label, KEY[=VALUE]"
	return c
}

func (f *runFlags) run(c *cobra.Command, s *settings, name string) (err error) {
	labels, err := f.validate(c, s, name)
	if err != nil {
		return err
	}
	e, err := s.resolve()
	if err != nil {
		return err
	}
	if e.server.Value != "" {
		return f.through(c, s, e.server, name, labels)
	}
	ctx := c.Context()
	store, kept, err := s.openOrEmbed(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	r, g, err := f.prepare(c, s, name, store)
	if err != nil {
		return err
	}
	defer r.close()
	r.queue = delivery.NewPrivateQueue()
	planner := inQueue{g, r.queue, typesOf(f.workers())}
	if r.handle, err = client.New(store).Start(ctx, planner, append(labels, job.EnginesLater())...); err != nil {
		return err
	}
	if r.kept = kept; kept { // it stays there, whatever becomes of this process
		fmt.Fprintf(r.errs, "job %s\n", r.handle.ID())
		own := 0
		if own, r.others, err = planner.counts(); err != nil {
			return err
		}
		if own > 0 {
			r.goOn = f.workerOf(r.queue)
		}
	}
	ctx, cancel := f.limited(ctx)
	defer cancel()
	err = interrupted(c.Context(), r.serve(ctx, store, f.workers()))
	late := context.WithoutCancel(ctx)
	if kept && err != nil {
		r.stays(late, errors.As(err, new(feedError)))
	}
	return f.ended(late, c, r, err)
}

// prepare reads the graph, with the types that others have registered in the store, and what its inputs get.
func (f *runFlags) prepare(c *cobra.Command, s *settings, name string, store storecall.Store) (*running, *graph.Graph, error) {
	others, err := registered(c.Context(), store)
	if err != nil {
		return nil, nil, err
	}
	g, err := f.load(name, others...)
	if err != nil {
		return nil, nil, err
	}
	r := &running{
		store: store, out: c.OutOrStdout(), errs: s.remarks(c), screen: term.IsTerminal(c.OutOrStdout()), every: 10 * time.Millisecond,
		json: s.output == "json", outputs: map[string][]json.RawMessage{},
	}
	if r.feeds, err = f.feeds(g, c.InOrStdin()); err != nil {
		r.close()
		return nil, nil, err
	}
	return r, g, nil
}

// limited ends a context when --timeout is over.
func (f *runFlags) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.timeout, timeoutError{after: f.timeout})
}

// ended tells how a graph ended, if that was not told, and draws it.
func (f *runFlags) ended(ctx context.Context, c *cobra.Command, r *running, err error) error {
	if err != nil && !r.told {
		err = errors.Join(err, r.tell(ctx, err)) // what was taken out of the outputs is nowhere else
	}
	if f.picture {
		err = errors.Join(err, r.draw(ctx, c.ErrOrStderr()))
	}
	return err
}

// typesOf are the types of workers.
func typesOf(workers []worker.Worker) map[string]bool {
	types := map[string]bool{}
	for _, w := range workers {
		if typ, err := job.TypeOf(w); err == nil { // an engine would refuse it
			types[typ] = true
		}
	}
	return types
}

// inQueue puts the jobs of a plan that are of some types, and its graphs, into one queue. Others stay where those are that run them.
type inQueue struct {
	job.Planner
	queue string
	types map[string]bool
}

// Plan implements job.Planner.
func (q inQueue) Plan() (*job.Plan, error) {
	plan, err := q.Planner.Plan()
	if err != nil {
		return nil, err
	}
	for i := range plan.Nodes {
		if n := &plan.Nodes[i]; n.Graph || q.types[n.Type] {
			n.Queue = q.queue
		}
	}
	return plan, nil
}

// counts are how many jobs of the plan the queue has, and how many others run.
func (q inQueue) counts() (own, others int, err error) {
	plan, err := q.Plan()
	if err != nil {
		return 0, 0, err
	}
	for i := range plan.Nodes {
		switch n := &plan.Nodes[i]; {
		case n.Graph:
		case n.Queue == q.queue:
			own++
		default:
			others++
		}
	}
	return own, others, nil
}

// validate refuses flags that make no sense with the file of that name, and returns what the
// graph is to be labelled with.
func (f *runFlags) validate(c *cobra.Command, s *settings, name string) (labels []job.Option, err error) {
	for _, flag := range append(f.given(c), "--all", "--yes", "--dry-run", "--after", "--force") {
		if flag != "--label" && c.Flags().Changed(flag[2:]) {
			return nil, usageError{fmt.Errorf("%s is for jobs that are there, and %s is a graph to be run", flag, name)}
		}
	}
	switch {
	case s.output == "name":
		return nil, usageError{errors.New("-o name is for jobs that are there")}
	case f.timeout < 0:
		return nil, usageError{fmt.Errorf("--timeout %s: use a positive time, or none", f.timeout)}
	}
	pairs, err := labelsOf(f.labels)
	if err != nil {
		return nil, err
	}
	for key, value := range pairs {
		labels = append(labels, job.Label(key, value))
	}
	taken := name == "-"
	for _, in := range f.in {
		if _, source, _ := strings.Cut(in, "="); source != "-" {
			continue
		}
		if taken {
			return nil, usageError{fmt.Errorf("--in %s: standard input can be read once only, use a file", in)}
		}
		taken = true
	}
	return labels, nil
}

// openOrEmbed opens the Redis that the flags name, or one in this process, which keeps nothing.
func (s *settings) openOrEmbed(ctx context.Context) (store *redisstore.Store, kept bool, err error) {
	cfg, err := s.anyConfig()
	if err != nil {
		return nil, false, err
	}
	store, err = redisstore.Open(ctx, cfg)
	return store, cfg.URL != "", err
}

// graphOnly are the flags that are for a graph that is to be run.
var graphOnly = []string{"in", "text", "param", "draw", "timeout", "root", "allow-exec", "allow-private-http"}

// wake is that of wakeFlags, and refuses what is for a graph.
func (f *runFlags) wake(c *cobra.Command, s *settings, args []string) error {
	for _, name := range graphOnly {
		switch {
		case !c.Flags().Changed(name):
		case len(args) == 0:
			return usageError{fmt.Errorf("--%s is for a graph: give its FILE", name)}
		default:
			return usageError{fmt.Errorf("--%s is for a graph, and there is no file %s: leave it out, or give a FILE", name, args[0])}
		}
	}
	return f.wakeFlags.wake(c, s, args)
}

// feed is what an input gets.
type feed struct {
	port   string
	from   *source // nil if nothing more comes
	asText bool
}

// feeds reads --in, and opens its files; behind it come the ends of all inputs.
func (f *runFlags) feeds(g *graph.Graph, stdin io.Reader) (feeds []feed, err error) {
	plan, err := g.Plan()
	if err != nil {
		return nil, fileError{err}
	}
	var inputs []string
	for _, p := range plan.Nodes[0].Ports {
		if p.Dir == port.Input {
			inputs = append(inputs, p.Name)
		}
	}
	for _, in := range f.in {
		name, text, ok := strings.Cut(in, "=")
		if !ok {
			return feeds, usageError{fmt.Errorf("--in %q: write it as PORT=VALUE, PORT=@FILE or PORT=-", in)}
		}
		if !slices.Contains(inputs, name) {
			return feeds, usageError{fmt.Errorf("--in %s: the graph has no such input: %s", name, port.Suggest(name, inputs))}
		}
		from, err := openSource(text, stdin, f.asText)
		if err != nil {
			return feeds, fmt.Errorf("--in %s: %w", name, err)
		}
		feeds = append(feeds, feed{port: name, from: from, asText: f.asText})
	}
	for _, name := range inputs {
		feeds = append(feeds, feed{port: name})
	}
	return feeds, nil
}

// running is a running graph.
type running struct {
	store   storecall.Store
	handle  *client.Handle
	printed int    // messages that came out
	queue   string // of the jobs that this process runs
	kept    bool   // they are on a Redis
	goOn    string // the command that runs them when this one has ended; empty: others run all of them
	others  int    // jobs that others run
	errs    io.Writer
	feeds   []feed
	out     io.Writer
	screen  bool // out is a terminal
	json    bool
	every   time.Duration // how often it is looked at
	told    bool          // how it ended
	outputs map[string][]json.RawMessage
}

// close closes the files of --in.
func (r *running) close() {
	for _, f := range r.feeds {
		if f.from != nil {
			f.from.close()
		}
	}
}

// serve runs the graph's jobs until it has settled.
func (r *running) serve(ctx context.Context, store *redisstore.Store, workers []worker.Worker) error {
	engine, err := worker.New(worker.Config{Store: store, Workers: workers, Queues: map[string]int{r.queue: 1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	interruptsOf(ctx).add(engine.Abort, nothing)
	told := func() {}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		err := r.watch(ctx)
		told = tellStop(ctx, r.errs, engine, client.New(store), r.kept)
		return err
	})
	told()
	return err
}

// watch feeds the graph, and prints what comes out until it has settled.
func (r *running) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fed := make(chan error, 1)
	go func() { fed <- r.feed(ctx) }()
	return r.follow(ctx, fed)
}

// feedError says that not all of --in could be sent.
type feedError struct{ error }

func (e feedError) Unwrap() error { return e.error }

// feed sends what --in names, waiting where a port is full, and closes the inputs.
func (r *running) feed(ctx context.Context) error {
	for _, f := range r.feeds {
		var err error
		if f.from == nil {
			err = r.handle.Close(ctx, f.port)
		} else {
			err = (&sender{handle: r.handle, port: f.port, wait: -1, asText: f.asText}).send(ctx, f.from)
		}
		if err != nil {
			return feedError{err}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// follow prints what comes out until the graph has settled.
func (r *running) follow(ctx context.Context, fed <-chan error) error {
	still := quiet{from: time.Now(), patience: firstPatience}
	for feeding := true; ; {
		if feeding {
			select {
			case err := <-fed:
				if feeding = false; err != nil {
					return err
				}
			default:
			}
		}
		info, err := r.handle.Info(ctx)
		if err != nil {
			return err
		}
		if err := r.collect(ctx, info); err != nil {
			return err
		}
		if info.Status.Settled() || info.Status == "failed" {
			return r.finish(ctx)
		}
		if err := errors.Join(still.say(ctx, r), pause(ctx, r.every)); err != nil {
			return err
		}
	}
}

// collect takes what is in the graph's Out ports.
func (r *running) collect(ctx context.Context, info *job.Info) error {
	for _, p := range info.Ports {
		if p.Dir != port.Output || p.Waiting == 0 {
			continue
		}
		items, err := r.handle.Drain(ctx, port.Output, p.Name)
		if err != nil {
			return err
		}
		r.printed += len(items)
		if r.json {
			r.outputs[p.Name] = append(r.outputs[p.Name], items...)
			continue
		}
		for _, raw := range items {
			if err := r.print(info, p.Name, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// print writes a message as a line: texts as they are, on a terminal without what would
// disturb it, others as JSON.
func (r *running) print(info *job.Info, name string, raw json.RawMessage) error {
	line := string(raw)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if line = text; r.screen {
			line = term.Clean(text)
		}
	}
	outputs := 0
	for _, p := range info.Ports {
		if p.Dir == port.Output {
			outputs++
		}
	}
	if outputs > 1 {
		line = name + ": " + line
	}
	_, err := fmt.Fprintln(r.out, line)
	return err
}

// result is what weir run -o json prints.
type result struct {
	Job     job.ID                       `json:"job"`
	Status  string                       `json:"status"`
	Outputs map[string][]json.RawMessage `json:"outputs"`
	Dead    int64                        `json:"dead_letters,omitempty"`
	Errors  []string                     `json:"errors,omitempty"`
	Next    *next                        `json:"next,omitempty"`
}

// finish prints the rest and tells how the graph ended.
func (r *running) finish(ctx context.Context) error {
	info, err := r.handle.Info(ctx)
	if err == nil {
		err = r.collect(ctx, info)
	}
	if err != nil {
		return err
	}
	_, failed := r.handle.Wait(ctx)
	return errors.Join(failed, r.tell(ctx, failed))
}

// tell prints as JSON what came out and how the graph ended, or why it is not waited for.
func (r *running) tell(ctx context.Context, failed error) error {
	r.told = true
	dead := r.deadLetters(ctx)
	if !r.json {
		return nil
	}
	info, err := r.handle.Info(ctx)
	if err != nil {
		return err
	}
	res := result{Job: info.ID, Status: string(info.Status), Outputs: r.outputs, Dead: dead}
	if failed != nil {
		res.Errors = append(res.Errors, failed.Error())
		res.Next = r.next(info, errors.As(failed, new(feedError)))
	}
	for _, p := range info.Ports {
		if p.Dir == port.Output && res.Outputs[p.Name] == nil {
			res.Outputs[p.Name] = []json.RawMessage{}
		}
	}
	return encode(r.out, res, "  ")
}

func (r *running) draw(ctx context.Context, w io.Writer) error {
	tree, err := r.handle.Tree(ctx)
	if err != nil {
		return err
	}
	style := term.StyleOf(w)
	return draw.Terminal(w, draw.Jobs(tree), draw.TerminalOptions{Width: style.Width, Color: style.Color, ASCII: style.ASCII})
}
