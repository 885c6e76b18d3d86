package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/trigger"
)

// triggerFlags say when a trigger fires, and what it launches.
type triggerFlags struct {
	graph              graphFlags
	zone, missed       string
	count              int
	channel, filter    string
	typ, queue, args   string
	file, port         string
	priority           int
	retain             retentionFlag
	sequential         string
	unique             uniqueFlags
	parallel, waiting  int
	overflow, payload  string
	throttle, debounce time.Duration
	verify, secretEnv  string
}

func (f *triggerFlags) add(s *settings, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.zone, "zone", "", "time `ZONE` of the schedule, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.missed, "missed", "", "what becomes of ticks while no engine ran: one (default), skip, all, or the most to take")
	flags.IntVarP(&f.count, "count", "n", 0, "how many ticks there are (default as many as the schedule has)")
	flags.StringVar(&f.channel, "channel", "", "fire for each message published to this `CHANNEL`, or below it")
	flags.StringVar(&f.filter, "filter", "", "fire only for messages for which this `EXPR` over it is true")
	flags.StringVar(&f.verify, "verify", "", "refuse messages sent over HTTP that are not signed by this `SCHEME`: github or standard")
	flags.StringVar(&f.secretEnv, "secret-env", "", "the environment `VARIABLE` that has the secret which they are signed with")
	flags.StringVar(&f.typ, "type", "", "launch a job of this `TYPE`")
	flags.StringVar(&f.args, "args", "", "its parameters, a `JSON` object")
	flags.StringVar(&f.file, "graph", "", "launch the graph of this `FILE`, as it is now")
	flags.StringVar(&f.port, "port", "", "In `PORT` of the launched root that gets what the firing says (default in, or the only one)")
	flags.StringVar(&f.queue, "queue", "", "`QUEUE` of launched jobs that name none")
	flags.IntVar(&f.priority, "priority", 0, "their priority, from 0 to 1000 (default 500)")
	flags.Var(&f.retain, "retain", "keep a launched tree so long after it has settled, like 12h or 7d, or forever")
	flags.StringVar(&f.sequential, "sequential-key", "", "of the trees with one `KEY` one is active at a time, in the order of their creation; the others wait")
	f.unique.add(flags)
	flags.IntVar(&f.parallel, "parallel", 0, "let at most `N` launched trees be unfinished (default no limit)")
	flags.IntVar(&f.waiting, "waiting", 0, "let `N` firings wait for one of these to end")
	flags.StringVar(&f.overflow, "overflow", "", "what becomes of more: wait (default) or drop")
	spanVar(flags, &f.throttle, "throttle", 0, "join what comes in this span of time into one firing at its end")
	spanVar(flags, &f.debounce, "debounce", 0, "join what comes until nothing has come for so long")
	flags.StringVar(&f.payload, "payload", "", "what a joined firing says: original, the first message (default), or append, a list of all")
	f.graph.add(c)
	oneOfWords(c, "overflow", []string{trigger.Wait, trigger.Drop})
	oneOfWords(c, "payload", []string{trigger.Original, trigger.Append})
	oneOfWords(c, "verify", trigger.Schemes())
	oneOfWords(c, "missed", []string{"one", "skip", "all"})
	s.completeFlag(c, "type", typeWords)
	s.completeFlag(c, "queue", queueWords)
}

// apply changes a definition as the words and flags say that were given.
func (f *triggerFlags) apply(s *settings, c *cobra.Command, args []string, d *trigger.Definition) error {
	if len(args) > 0 {
		kind, text := schedule.Detect(args[0])
		d.Schedule = string(kind) + ":" + text
		if args[0] == "" {
			d.Schedule = ""
		} else if _, err := schedule.Parse(kind, text, f.zone, time.Now()); err != nil {
			return refusedSchedule(err)
		}
	}
	given := func(name string, set func()) {
		if c.Flags().Changed(name) {
			set()
		}
	}
	given("zone", func() { d.Zone = f.zone })
	given("missed", func() { d.Missed = f.missed })
	given("count", func() { d.Count = f.count })
	given("channel", func() { d.Channel = f.channel })
	given("filter", func() { d.Filter = f.filter })
	given("verify", func() {
		if d.Verify = nil; f.verify != "" {
			d.Verify = &trigger.Verify{Scheme: f.verify}
		}
	})
	l := &d.Limits
	given("parallel", func() { l.Parallel = f.parallel })
	given("waiting", func() { l.Queue = f.waiting })
	given("overflow", func() { l.Overflow = f.overflow })
	given("throttle", func() { l.Throttle = component.Duration(f.throttle) })
	given("debounce", func() { l.Debounce = component.Duration(f.debounce) })
	given("payload", func() { l.Payload = f.payload })
	if err := f.launch(s, c, d, given); err != nil {
		return err
	}
	if err := d.Validate(time.Now()); err != nil {
		return usageError{err}
	}
	return nil
}

// secret is what messages are signed with, if a flag says where it is.
func (f *triggerFlags) secret() (string, error) {
	if f.secretEnv == "" {
		return "", nil
	}
	secret := os.Getenv(f.secretEnv)
	if secret == "" {
		return "", usageError{fmt.Errorf("--secret-env: the environment has no variable %s, or it is empty", f.secretEnv)}
	}
	if err := job.CheckSecret(secret); err != nil {
		return "", usageError{fmt.Errorf("--secret-env %s: %w", f.secretEnv, err)}
	}
	return secret, nil
}

// launch changes what is launched.
func (f *triggerFlags) launch(s *settings, c *cobra.Command, d *trigger.Definition, given func(string, func())) error {
	if d.Launch == nil {
		if f.typ == "" && f.file == "" {
			return nil
		}
		d.Launch = &trigger.Launch{}
	}
	l := d.Launch
	if f.typ != "" && f.file != "" {
		return usageError{errors.New("--type and --graph: use one of them")}
	}
	if f.typ != "" {
		l.Type, l.Plan, l.Params = f.typ, nil, nil
	}
	if c.Flags().Changed("args") {
		if !json.Valid([]byte(f.args)) {
			return usageError{fmt.Errorf("--args %.60q is not valid JSON", f.args)}
		}
		l.Args = json.RawMessage(f.args)
	}
	if f.file != "" {
		g, err := f.graph.loadKnown(c, s, f.file)
		if err != nil {
			return err
		}
		plan, err := g.Plan()
		if err != nil {
			return err
		}
		l.SequentialKey = plan.SequentialKey // which a plan in JSON does not have
		if by := plan.Unique; by != nil {
			l.Unique = &trigger.Unique{Key: by.Key, For: component.Duration(by.For)}
		}
		l.Type, l.Args, l.Plan = "", nil, (*trigger.Plan)(plan)
		if l.Params, err = f.graph.values(); err != nil {
			return err
		}
	}
	given("port", func() { l.Port = f.port })
	given("queue", func() { l.Queue = f.queue })
	given("priority", func() { l.Priority = &f.priority })
	given("sequential-key", func() { l.SequentialKey = f.sequential })
	if f.sequential == "" && c.Flags().Changed("sequential-key") {
		return emptyKey("sequential-key")
	}
	by, err := f.unique.value(c.Flags())
	if err != nil {
		return err
	}
	if by != nil {
		l.Unique = &trigger.Unique{Key: by.Key, For: component.Duration(by.For)}
	}
	given("retain", func() { l.Retain = f.retain.text })
	return nil
}
