package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/workkit"
)

func newTrigger(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "trigger",
		Short: "Start trees by schedules, events and webhooks",
		Long: `Start trees by schedules, events and webhooks. A trigger is a durable job: each firing happens
exactly once, on some engine, and launches a tree. docs/triggers.md describes them.`,
		Example: "  weir trigger add 'every weekday at 9am' --type report --alias daily\n  weir trigger list\n  weir trigger show daily\n  weir trigger pause daily",
	}
	c.AddCommand(
		newTriggerAdd(s), newTriggerList(s), s.complete(newTriggerShow(s), triggerWords), s.complete(newTriggerChange(s), triggerWords),
		s.complete(newTriggerFire(s), triggerWords),
		s.complete(triggerAct(s, "pause", "Let a trigger drop what would fire, until it is resumed", "pauses", trigger.Pause), triggerWords),
		s.complete(triggerAct(s, "resume", "Let a paused trigger fire again", "goes on", trigger.Resume), triggerWords),
		s.complete(newTriggerDelete(s), triggerWords),
	)
	return c
}

// triggerWords are the triggers, with what makes them fire.
func triggerWords(ctx context.Context, store storecall.Store, _ []string, _ string) ([]string, error) {
	var all []string
	for t, err := range trigger.List(ctx, client.New(store), false, 0) {
		if err != nil || len(all) == completed {
			return all, err
		}
		all = append(all, described(nameOf(t), firesOn(t)))
	}
	return all, nil
}

// described is a word for completion with what it stands for.
func described(word, what string) string { return word + "\t" + what }

func nameOf(t *trigger.Status) string {
	if len(t.Aliases) > 0 {
		return t.Aliases[0]
	}
	return string(t.ID)
}

// firesOn says what makes a trigger fire.
func firesOn(t *trigger.Status) string {
	switch t.Kind {
	case trigger.Scheduled:
		return strings.TrimSpace(t.Definition.Schedule + " " + t.Definition.Zone)
	case trigger.Event:
		return strings.TrimSpace("channel " + t.Definition.Channel + " " + t.Definition.Filter)
	default:
	}
	return strings.TrimSpace("webhook " + t.Definition.Filter)
}

func newTriggerAdd(s *settings) *cobra.Command {
	var f triggerFlags
	var alias, kit string
	var labels []string
	var patch bool
	c := &cobra.Command{
		Use:   "add [SCHEDULE]",
		Short: "Make a trigger that launches a job of a type, or a graph",
		Long: `Make a trigger that launches a job of a type, or a graph, each time it fires: at the times of
SCHEDULE (weir next says what one means), for each message published to --channel, or, with
neither, for each message that is sent to it (weir send TRIGGER in MESSAGE, or POST
/v1/triggers/ID/send).

With --patch a trigger that has the --alias, and is another one, becomes this one, so the command
may be repeated with each deployment. It holds before its next firing, and another schedule
begins anew.

With --workkit it is no trigger, but an entry of a schedule of WorkKit, in the keys NAME:jobs
and NAME:next of the Redis, as other programs write it: without SCHEDULE it runs at once.
docs/workkit.md tells more.`,
		Example: `  weir trigger add '30 9 * * MON-FRI' --zone Europe/Berlin --type report --args '{"kind":"daily"}' --alias daily
  weir trigger add 'in 10m' --graph cleanup.yaml
  weir trigger add --channel /files/new --filter 'it.size > 0' --type import --parallel 4
  weir trigger add --type deploy --debounce 30s --payload append --parallel 1 --overflow drop
  weir trigger add --workkit app-tasks 'in 5 minutes' --type "#'your-app.user/activate" --args '["tracy@domain.com"]'`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("workkit") {
				return f.addEntry(s, c, kit, args)
			}
			var d trigger.Definition
			if err := f.apply(s, c, args, &d); err != nil {
				return err
			}
			if d.Launch == nil {
				return usageError{fmt.Errorf("what is it to launch? Give --type or --graph")}
			}
			secret, err := f.secret()
			if err != nil {
				return err
			}
			if (d.Verify == nil) != (secret == "") {
				return usageError{errors.New("--verify and --secret-env go together: one says how messages are signed, the other with what")}
			}
			options := []job.Option{job.By(actor)}
			given, err := labelsOf(labels)
			if err != nil {
				return err
			}
			for k, v := range given {
				options = append(options, job.Label(k, v))
			}
			if err := filled(c, "alias"); err != nil {
				return err
			}
			if patch && alias == "" {
				return usageError{errors.New("--patch changes the trigger that has the --alias: give one")}
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				h, err := addTrigger(ctx, store, d, alias, patch, options)
				if err == nil && secret != "" {
					err = trigger.SetSecret(ctx, store, h, secret)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), h.ID())
				return err
			})
		},
	}
	f.add(s, c)
	c.Flags().StringVar(&alias, "alias", "", "a name for the trigger")
	c.Flags().BoolVar(&patch, "patch", false, "change the trigger that has the --alias into this one, if there is one")
	c.Flags().StringVar(&kit, "workkit", "", "add an entry to the WorkKit schedule of this `NAME` instead; --args is a JSON array then")
	s.completeFlag(c, "workkit", kitWords)
	c.Flags().StringArrayVar(&labels, "label", nil, "a label of the trigger, `KEY=VALUE`")
	return c
}

// addTrigger makes a trigger, or changes the one that has the alias.
func addTrigger(ctx context.Context, store storecall.Store, d trigger.Definition, alias string, patch bool, options []job.Option) (*client.Handle, error) {
	client := client.New(store)
	if patch {
		return trigger.Declare(ctx, client, alias, d, options...)
	}
	if alias != "" {
		options = append(options, job.Alias(alias))
	}
	h, err := trigger.Add(ctx, client, d, options...)
	if errors.Is(err, job.ErrExists) && alias != "" {
		err = fmt.Errorf("%w; weir trigger show %[2]s, weir trigger change %[2]s, weir trigger delete %[2]s, or --patch to change it into this one", err, alias)
	}
	return h, err
}

func newTriggerChange(s *settings) *cobra.Command {
	var f triggerFlags
	c := &cobra.Command{
		Use:   "change TRIGGER [SCHEDULE]",
		Short: "Change when a trigger fires, and what it launches",
		Long: `Change when a trigger fires, and what it launches, before its next firing. What no flag names
stays; an empty text or a 0 clears it. Another schedule begins anew.`,
		Example: "  weir trigger change daily '0 8 * * MON-FRI'\n  weir trigger change daily --parallel 2 --overflow drop",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			secret, err := f.secret()
			if err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				client := client.New(store)
				h, err := find(ctx, client, args[0])
				if err != nil {
					return err
				}
				t, err := trigger.Get(ctx, client, h, 0)
				if err != nil {
					return err
				}
				before, err := fieldsOf(t.Definition)
				if err != nil {
					return err
				}
				if err := f.apply(s, c, args[1:], &t.Definition); err != nil {
					return err
				}
				after, err := fieldsOf(t.Definition)
				if err != nil {
					return err
				}
				same := maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
				if same && secret == "" {
					return usageError{fmt.Errorf("trigger %s is so already: give it another SCHEDULE, or a flag with what is to change", h.ID())}
				}
				for name := range before {
					if after[name] == nil {
						after[name] = json.RawMessage("null")
					}
				}
				raw, err := json.Marshal(after)
				if err != nil {
					return err
				}
				if secret != "" && t.Definition.Verify == nil {
					return usageError{errors.New("--secret-env is for triggers that verify signatures: give --verify, too")}
				}
				if !same {
					err = trigger.Change(ctx, client, h, actor, raw)
				}
				if err == nil && secret != "" {
					err = store.SetSecret(ctx, h.ID(), secret)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "trigger %s is changed\n", h.ID())
				return err
			})
		},
	}
	f.add(s, c)
	return c
}

// fieldsOf are the fields of a definition in JSON.
func fieldsOf(d trigger.Definition) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	return fields, json.Unmarshal(raw, &fields)
}

// triggerAct is a command that asks one thing of a trigger.
func triggerAct(s *settings, verb, short, done string, fn func(ctx context.Context, h *client.Handle, by string) error) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " TRIGGER",
		Short:   short,
		Long:    short + ".\nIt holds before the next firing; while no engine runs it waits: weir trigger show tells.",
		Example: "  weir trigger " + verb + " daily",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.act(c, args[0], done, func(ctx context.Context, h *client.Handle) error { return fn(ctx, h, actor) })
		},
	}
}

func newTriggerFire(s *settings) *cobra.Command {
	var payload string
	c := &cobra.Command{
		Use:     "fire TRIGGER",
		Short:   "Let a trigger fire once, now, also while it is paused",
		Example: "  weir trigger fire daily\n  weir trigger fire import --payload '{\"file\":\"a.csv\"}'",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var raw json.RawMessage
			if c.Flags().Changed("payload") {
				if err := flagJSON("--payload", payload); err != nil {
					return usageError{err}
				}
				raw = json.RawMessage(payload)
			}
			return s.act(c, args[0], "fires", func(ctx context.Context, h *client.Handle) error { return trigger.Fire(ctx, h, actor, raw) })
		},
	}
	c.Flags().StringVar(&payload, "payload", "", "what the firing says, `JSON`; default what a tick of a schedule does")
	return c
}

// deletion is how long weir trigger delete waits for a run in progress, or an engine that is busy.
const deletion = 15 * time.Second

func newTriggerDelete(s *settings) *cobra.Command {
	var kit string
	c := &cobra.Command{
		Use:     "delete TRIGGER",
		Short:   "End a trigger, and remove it",
		Long:    "End a trigger, and remove it. Trees that it launched go on.\nWith --workkit TRIGGER is the ID of an entry of a WorkKit schedule.",
		Example: "  weir trigger delete daily\n  weir trigger delete --workkit app-tasks 8d1ea67747842d56fd5c06ba050885226d73bead",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if kit != "" {
				return s.besideRedis(c, func(ctx context.Context, store *redisstore.Store) error {
					return workkit.Remove(ctx, store, kit, args[0])
				})
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				h, err := find(ctx, client.New(store), args[0])
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, deletion)
				defer cancel()
				err = trigger.Delete(ctx, store, h)
				if err != nil && ctx.Err() != nil {
					err = fmt.Errorf("%w: it fires no more, and waits for an engine to have a slot free; then delete it again", err)
				}
				if err == nil {
					_, err = fmt.Fprintf(c.OutOrStdout(), "trigger %s is deleted\n", h.ID())
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&kit, "workkit", "", "remove an entry of the WorkKit schedule of this `NAME` instead")
	s.completeFlag(c, "workkit", kitWords)
	return c
}

func newTriggerList(s *settings) *cobra.Command {
	var all bool
	var kit string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the triggers: when they fire next, and what they did",
		Example: "  weir trigger list\n  weir trigger list --all -o json\n  weir trigger list --workkit app-tasks",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("workkit") {
				return s.listEntries(c, kit)
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				found := []*trigger.Status{}
				for t, err := range trigger.List(ctx, client.New(store), all, 1) {
					if err != nil {
						return err
					}
					found = append(found, t)
				}
				return s.show(c, found, "", func(w io.Writer) error {
					if len(found) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no triggers: make one with weir trigger add")
						return err
					}
					return triggerTable(w, found)
				})
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that fire no more")
	c.Flags().StringVar(&kit, "workkit", "", "list the entries of the WorkKit schedule of this `NAME` instead")
	s.completeFlag(c, "workkit", kitWords)
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// maxWhen is how many columns of a table say when a trigger fires.
const maxWhen = 30

func triggerTable(w io.Writer, all []*trigger.Status) error {
	style := term.StyleOf(w)
	rows := [][]string{{"TRIGGER", "WHEN", "NEXT", "FIRED", "DROPPED", "STATE"}}
	for _, t := range all {
		next := "-"
		if len(t.Next) > 0 {
			next = comes(style, t.Next[0])
		}
		rows = append(rows, []string{
			term.Fit(term.Clean(nameOf(t)), maxWhen), term.Fit(term.Clean(firesOn(t)), maxWhen), next, term.Number(t.Firings), term.Number(dropped(t)), stateOf(t),
		})
	}
	return term.Table(w, rows, style)
}

// comes is when something that is listed is to be: how long until then, or when that is, as --time says.
func comes(style term.Style, at time.Time) string {
	if style.ISO {
		return style.Age(at)
	}
	return style.In(at)
}

func dropped(t *trigger.Status) (n int64) {
	for _, some := range t.Dropped {
		n += some
	}
	return n
}

// stateOf says in a word whether a trigger fires.
func stateOf(t *trigger.Status) string {
	switch {
	case t.Status.Settled(), t.Status == statemachine.Failed:
		return string(t.Status)
	case t.Paused:
		return "paused"
	}
	return "active"
}

func newTriggerShow(s *settings) *cobra.Command {
	next := 5
	c := &cobra.Command{
		Use:     "show TRIGGER",
		Short:   "Show a trigger: its next times, what it launches, and what it dropped",
		Example: "  weir trigger show daily\n  weir trigger show daily --next 20 -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if next < 0 || next > maxNext {
				return usageError{fmt.Errorf("--next %d: use 0 to %d", next, maxNext)}
			}
			return s.with(c, args[0], func(ctx context.Context, client *client.Client, h *client.Handle) error {
				t, err := trigger.Get(ctx, client, h, next)
				if err != nil {
					return err
				}
				return s.show(c, t, "", func(w io.Writer) error { return printTrigger(w, t) })
			})
		},
	}
	c.Flags().IntVarP(&next, "next", "n", next, "show the next `N` times")
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// printTrigger shows a trigger to people.
func printTrigger(w io.Writer, t *trigger.Status) error {
	style := term.StyleOf(w)
	var rows [][2]string
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, [2]string{name, text})
		}
	}
	add("trigger", strings.Join(append([]string{string(t.ID)}, t.Aliases...), " "))
	add("state", stateOf(t))
	add("when", firesOn(t))
	add("means", t.Understood)
	for i, at := range t.Next {
		text := at.UTC().Format(time.RFC3339)
		if !style.ISO {
			text += ", " + style.In(at)
		}
		add([]string{"next", " "}[min(i, 1)], text)
	}
	if l := t.Definition.Launch; l != nil {
		add("launches", launched(l))
	}
	limits, err := json.Marshal(t.Definition.Limits)
	if err != nil {
		return err
	}
	if string(limits) != "{}" {
		add("limits", string(limits))
	}
	add("fired", fmt.Sprintf("%s, %s launched", term.Times(t.Firings), counted(int(t.Launches), "tree")))
	if t.Failed > 0 {
		add("failed", term.Number(t.Failed)+" of these trees")
	}
	if t.Last != nil {
		add("last", t.Last.Format(time.RFC3339)+" "+string(t.LastTree))
	}
	for i, reason := range slices.Sorted(maps.Keys(t.Dropped)) {
		add([]string{"dropped", " "}[min(i, 1)], term.Number(t.Dropped[reason])+" "+reason)
	}
	if len(t.Running) > 0 {
		add("running", counted(len(t.Running), "tree"))
	}
	if t.Waiting > 0 {
		add("waiting", term.Number(t.Waiting))
	}
	if t.Pending > 0 {
		add("pending", counted(int(t.Pending), "act")+" asked of it, waiting for an engine")
	}
	add("reason", t.Reason)
	for _, row := range rows {
		for _, line := range style.Line(style.Bold(fmt.Sprintf("%-9s", row[0])), term.Clean(row[1])) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// launched says what a trigger launches, with its parameters.
func launched(l *trigger.Launch) string {
	if l.Plan == nil || len(l.Plan.Nodes) == 0 {
		return strings.TrimSpace(l.Type + " " + string(l.Args))
	}
	text := "graph " + l.Plan.Nodes[0].Type
	for _, name := range slices.Sorted(maps.Keys(l.Params)) {
		text += " " + name + "=" + string(l.Params[name])
	}
	return text
}
