package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// actor is what those who act by this program are called in logs.
const actor = "weir"

// byUser has logs say which user of this machine acts, as far as that is known. A server that knows its caller says that one.
func byUser(ctx context.Context) context.Context {
	by := actor
	if u, err := user.Current(); err == nil && u.Username != "" {
		by = u.Username
	}
	return job.WithContext(ctx, port.Context{port.ContextBy: by})
}

// checkArgs refuses what can be no parameters of a job.
func checkArgs(args string) error {
	if err := flagJSON("--args", args); err != nil {
		return err
	}
	if !strings.HasPrefix(strings.TrimLeft(args, " \t\r\n"), "{") {
		return fmt.Errorf("--args %.60q is not a JSON object, like {\"Width\": 640}", args)
	}
	if err := strict.Check([]byte(args)); err != nil {
		return fmt.Errorf("--args %w", err)
	}
	return nil
}

// typeFinder finds types of worker, as a store does.
type typeFinder interface {
	Type(ctx context.Context, queue, name string) (*job.TypeInfo, error)
}

// checkComponent refuses args that a component would refuse in its first run. What is no component, or a type of
// the same name with other arguments, the store knows alone.
func checkComponent(ctx context.Context, types typeFinder, n job.New) error {
	args, _ := n.Args.(json.RawMessage)
	typ, err := types.Type(ctx, n.Queue, n.Type)
	if err != nil {
		return nil //nolint:nilerr // Create says it better
	}
	if err := component.Accepts(typ, args); err != nil {
		return usageError{err}
	}
	return nil
}

// creation is the job that the command line describes.
type creation struct {
	job.New
	args, parent string
	labels       []string
	delay        time.Duration
	retain       retentionFlag
	priority     int
	repeat       job.RepeatRule
	unique       uniqueFlags
}

// check refuses flags that say nothing, and takes those that say by what the job is unique.
func (n *creation) check(c *cobra.Command) error {
	if n.delay < 0 {
		return usageError{fmt.Errorf("--in %s: use a positive time, like 10m", n.delay)}
	}
	err := filled(c, "sequential-key", "alias", "name", "parent")
	if err != nil {
		return err
	}
	n.Unique, err = n.unique.value(c.Flags())
	return err
}

// run creates the job, and prints its ID.
func (n *creation) run(ctx context.Context, c *cobra.Command, store storecall.Store) error {
	client := client.New(store)
	var err error
	if n.Labels, err = labelsOf(n.labels); err != nil {
		return err
	}
	n.By, n.Retain = actor, n.retain.Duration
	if c.Flags().Changed("priority") {
		n.Priority = &n.priority
	}
	if c.Flags().Changed("args") {
		if err := checkArgs(n.args); err != nil {
			return usageError{err}
		}
		n.Args = json.RawMessage(n.args)
	}
	switch {
	case c.Flags().Changed("repeat"):
		n.Repeat = &n.repeat
	case n.repeat != job.RepeatRule{}:
		return usageError{errors.New("--zone and --missed are for a schedule: say when the job runs again with --repeat")}
	}
	if n.parent != "" {
		p, err := find(ctx, client, n.parent)
		if err != nil {
			return err
		}
		n.Parent = p.ID()
	}
	if n.delay > 0 {
		now, err := store.Now(ctx)
		if err != nil {
			return err
		}
		n.At = now.Add(n.delay)
	}
	if err := checkComponent(ctx, store, n.New); err != nil {
		return err
	}
	h, err := client.Create(ctx, n.New)
	if err != nil {
		return err
	}
	if n.Unique != nil {
		fmt.Fprintln(c.ErrOrStderr(), outcomes[api.Outcome(h)])
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), h.ID())
	return err
}

// outcomes say what became of a job that was to be created with a unique key.
var outcomes = map[string]string{
	api.OutcomeCreated: "created: no other job has its unique key",
	api.OutcomeFound:   "found: a job with its unique key was there, and is as it was",
	api.OutcomeMerged:  "merged: a job with its unique key was there, and has the args now",
}

func newCreate(s *settings) *cobra.Command {
	var n creation
	var g graphCreation
	var from string
	c := &cobra.Command{
		Use:   "create TYPE | create --graph FILE | create --from FILE",
		Short: "Create a job of a type that an engine has registered, or many, or start a graph",
		Long: `Create a job of a type that an engine has registered (weir types lists them). Its args are
checked first: their names, their kinds, and of components (weir components) all that these check.

With --unique nothing is created if a job of the type with the same args is there that has not
settled: its ID is printed, and on standard error whether a job was created, found or, with
--merge, merged. --unique-key tells by another text than type and args which jobs are the same
work, --unique-for looks for those that were created in that time, settled or not, and --merge
changes the args of the job that is there, if it has not begun to run.

With --graph the graph of a file is started, and its ID is printed: engines run it, its inputs
stay open (weir send), and nothing waits for it; weir run FILE does. With an --alias the command
may be repeated: the graph that has it is taken if it has the same definition, else --existing
says what to do.

With --from many are created, of which each is a line of a file: a JSON object with type and,
if you like, queue, priority, args, alias, labels, retain, in, at, parent, name, failure,
sequential_key, key, unique with key, for and merge, and repeat with schedule, zone and missed.
Of jobs with the same key one is created within an hour, so the command may be repeated. The
IDs are printed in the order of the lines, and an empty line for each that was not created.`,
		Example: "  weir create Resize --args '{\"Width\": 640}' --alias thumbs\n  weir create Report --in 1h\n  weir create Sync --args '{\"Customer\": 7}' --unique\n  weir create Digest --unique-key 'digest 7' --unique-for 24h\n  weir create Report --repeat 'cron:30 9 * * MON-FRI' --zone Europe/Berlin\n  weir create --graph order.yaml --alias order-7 --label team=shop\n  weir create --from jobs.jsonl\n" +
			"  echo '{\"type\": \"Resize\", \"args\": {\"Width\": 640}, \"key\": \"img-7\"}' | weir create --from -",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, words []string) error {
			if from != "" {
				return createFrom(s, c, from, words)
			}
			if err := g.check(c, words); err != nil {
				return err
			}
			if len(words) == 0 && g.file == "" {
				return usageError{errors.New("name the type of the job, or a file with --graph or --from")}
			}
			if err := n.check(c); err != nil {
				return err
			}
			if g.file != "" {
				return g.start(c, s, &n)
			}
			n.Type = words[0]
			return s.connected(c, func(ctx context.Context, store storecall.Store) error { return n.run(ctx, c, store) })
		},
	}
	c.Flags().StringVar(&from, "from", "", "`FILE` with a job in each line, as JSON; - for standard input")
	c.Flags().StringVar(&n.args, "args", "", "parameters of the job, a `JSON` object")
	c.Flags().StringVar(&n.Queue, "queue", job.DefaultQueue, "queue of the job")
	c.Flags().IntVar(&n.priority, "priority", job.DefaultPriority, "from 0 to 1000: of the ready jobs of a queue those of a higher one run first")
	c.Flags().StringVar(&n.Alias, "alias", "", "a name for the job")
	c.Flags().StringArrayVar(&n.labels, "label", nil, "a label of the job, `KEY=VALUE`; weir jobs --label finds it")
	c.Flags().StringVar(&n.parent, "parent", "", "`JOB` that it becomes a child of, with --name")
	c.Flags().StringVar(&n.Name, "name", "", "name as a child")
	c.Flags().Var(&n.retain, "retain", "keep the job so long after it has settled, like 12h or 7d, or forever")
	c.Flags().StringVar(&n.repeat.Schedule, "repeat", "", "run it again after it has completed, at the times of a `SCHEDULE` like FINISHED, +1 DAY or cron:30 9 * * *")
	c.Flags().StringVar(&n.repeat.Zone, "zone", "", "time zone of --repeat, like Europe/Berlin (default UTC)")
	c.Flags().StringVar(&n.repeat.Missed, "missed", "", "of times that came while the job could not run: one, skip, all, or the most to take")
	c.Flags().StringVar(&n.SequentialKey, "sequential-key", "", "of the jobs with one `KEY` one is active at a time, in the order of their creation; the others wait")
	c.Flags().StringVar((*string)(&n.OnFailure), "failure", "", "what follows when it has no tries left: fail (the default), restart, dead_letter, or ignore, of a child of a graph")
	n.unique.add(c.Flags())
	g.add(c)
	c.Flags().BoolVar(&n.unique.by.Merge, "merge", false, "merge --args into those of the job that has --unique-key, unless it has begun to run: null removes one")
	spanVar(c.Flags(), &n.delay, "in", 0, "not to run before this time has passed, like 10m")
	s.completeFlag(c, "queue", queueWords)
	s.completeFlag(c, "parent", jobWords)
	oneOfWords(c, "failure", []string{string(job.FailGraph), string(job.Restart), string(job.DeadLetter), string(job.Ignore)})
	return c
}

// refused adds to the refusal of an event, or of delete, what to do instead.
func refused(ctx context.Context, h *client.Handle, event statemachine.Event, err error) error {
	if !errors.Is(err, job.ErrStatus) {
		return err
	}
	info, infoErr := h.Info(ctx)
	switch {
	case infoErr != nil:
	case event == "" && info.Status == statemachine.Terminating:
		return fmt.Errorf("%w; wait until it is terminated: weir wait %s --for terminated", err, info.ID)
	case event == "" && info.Status != statemachine.Terminated:
		return fmt.Errorf("%w; end it first: weir terminate %s --recursive", err, info.ID)
	case event != "" && event != statemachine.GiveUp && info.Graph && info.Status == statemachine.Terminated:
		return fmt.Errorf("%w: graph %s is terminated, and does not run again: start it anew", job.ErrStatus, info.ID)
	case event == statemachine.GiveUp && info.Graph:
		return fmt.Errorf("%w: job %s is a graph, and fails with the jobs in it; to end it: weir terminate %s", job.ErrStatus, info.ID, info.ID)
	case event != "" && info.Graph:
		return fmt.Errorf("%w: job %s is a graph, and only the jobs in it run; to retry those that failed: weir retry %s --tree", job.ErrStatus, info.ID, info.ID)
	case event == statemachine.Retry && info.Status == statemachine.Running:
		return fmt.Errorf("%w; to have another run in place of the one in progress: weir retry %s --running", err, info.ID)
	case event == statemachine.Retry && info.Status == statemachine.Terminated:
		return fmt.Errorf("%w; to run it again: weir run %s --force", err, info.ID)
	case event == statemachine.Retry && (info.Status == statemachine.Completed || info.Status == statemachine.Suspended):
		return fmt.Errorf("%w; to have it run again: weir run %s", err, info.ID)
	}
	return err
}

// act is a command that does one thing to a job and says what.
func (s *settings) act(c *cobra.Command, name, done string, fn func(ctx context.Context, h *client.Handle) error) error {
	return s.actSaying(c, name, func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) { return done, fn(ctx, h) })
}

// actSaying does something to a job, which is not read before, and says what came of it.
func (s *settings) actSaying(c *cobra.Command, name string, fn func(ctx context.Context, h *client.Handle, none *job.Info) (string, error)) error {
	return s.with(c, name, func(ctx context.Context, _ *client.Client, h *client.Handle) error {
		done, err := fn(byUser(ctx), h, nil)
		if err != nil {
			return err
		}
		if strings.HasPrefix(done, "will ") {
			done += afterLock(ctx, h)
		}
		return s.did(c, h.ID(), done)
	})
}

// afterLock says of a locked job what it waits for before it does anything, and how to break the lock; of others nothing.
func afterLock(ctx context.Context, h *client.Handle) string {
	lock, locked, err := h.Locked(ctx)
	if err != nil || !locked {
		return ""
	}
	return fmt.Sprintf(" after its lock (%s); weir unlock %s --force ends that", term.Style{}.Lock(lock), h.ID())
}

// wakeFlags are those of weir run for jobs.
type wakeFlags struct {
	bulkFlags
	force bool
	after time.Duration
}

// wake asks for a run of a job, or of all that are meant.
func (f *wakeFlags) wake(c *cobra.Command, s *settings, args []string) error {
	one, err := f.one(c, s, args)
	if err != nil {
		return err
	}
	switch {
	case f.after < 0:
		return usageError{fmt.Errorf("--after %s: use a positive time, like 10m", f.after)}
	case f.after > 0 && f.force:
		return usageError{errors.New("--force runs a job now, and --after later: use one of them")}
	}
	event := statemachine.Run
	if f.force {
		event = statemachine.Force
	}
	run := func(ctx context.Context, h *client.Handle) error {
		switch {
		case f.after > 0:
			return refused(ctx, h, event, h.RunAfter(ctx, f.after))
		case f.force:
			return refused(ctx, h, event, h.Force(ctx))
		}
		return refused(ctx, h, event, h.Run(ctx))
	}
	do := func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
		if err := run(ctx, h); err != nil {
			return "", err
		}
		info, err := h.Info(ctx)
		if err != nil {
			return "will run", nil //nolint:nilerr // it has been done
		}
		return willRun(info), nil
	}
	if one {
		return s.actSaying(c, args[0], do)
	}
	return f.act(c, s, deed{verb: "Run", on: append(on(event), statemachine.Queued, statemachine.Running), do: do})
}

// willRun says of a job that was asked to run when it does.
func willRun(i *job.Info) string {
	switch why := explain.Throttled(i); {
	case why != "":
		return fmt.Sprintf("is throttled: %s; it will run at %s", why, i.Next.UTC().Format(time.RFC3339))
	case i.Status == statemachine.Queued && strings.HasPrefix(i.Reason, "limit: "):
		return fmt.Sprintf("waits for a place (%s), and will run then", i.Reason)
	}
	return "will run"
}

func newTerminate(s *settings) *cobra.Command {
	var f bulkFlags
	var recursive bool
	c := &cobra.Command{
		Use:     "terminate [JOB...]",
		Short:   "End a job: a run in progress finishes, then its Shutdown gets its chance",
		Long:    "End a job: a run in progress finishes, then its Shutdown gets its chance." + bulkHelp,
		Example: "  weir terminate album-2026 album-2027 --recursive\n  weir terminate --label customer=7 --older 30d --recursive",
		Args:    usage(cobra.ArbitraryArgs),
	}
	end := func(ctx context.Context, h *client.Handle) error {
		if recursive {
			return h.TerminateAll(ctx)
		}
		return h.Terminate(ctx)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.do(c, s, args, "will end", end, deed{
			verb: "Terminate", on: on(statemachine.Terminate),
			do: func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
				return "will end", end(ctx, h)
			},
		})
	}
	f.flags(s, c)
	c.Flags().BoolVarP(&recursive, "recursive", "r", false, "all jobs below it, too")
	return c
}

func newDelete(s *settings) *cobra.Command {
	var f bulkFlags
	c := &cobra.Command{
		Use:     "delete [JOB...]",
		Short:   "Remove a terminated job and all below it, with everything they have",
		Long:    "Remove a terminated job and all below it, with everything they have." + bulkHelp,
		Example: "  weir terminate album-2026 --recursive && weir delete album-2026\n  weir delete --status terminated --older 7d",
		Args:    usage(cobra.ArbitraryArgs),
	}
	remove := func(ctx context.Context, h *client.Handle) error { return refused(ctx, h, "", h.Delete(ctx)) }
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.do(c, s, args, "is deleted", remove, deed{
			verb: "Delete", on: []statemachine.Status{statemachine.Terminated},
			do: func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
				err := h.Delete(ctx)
				if errors.Is(err, job.ErrNotFound) {
					err = nil // it went with one above it
				}
				return "is deleted", err
			},
		})
	}
	f.flags(s, c)
	return c
}
