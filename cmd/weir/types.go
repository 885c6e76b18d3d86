package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// messagesShown is how much of the messages of a port a list of types shows.
const messagesShown = 24

func newTypes(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "types [TYPE]",
		Short: "List the types of workers that engines have registered",
		Long: `List the types of workers that engines have registered, with the messages of their ports:
your own first, then components. Of TYPE they are described in full, with its arguments and what
limits its runs. -o json has more: GET /v1/types has JSON Schemas of both.`,
		Example: "  weir types\n  weir types Resize\n  weir types -o json",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				all, err := client.New(store).Types(ctx)
				if err == nil && len(args) > 0 {
					all, err = typesNamed(all, args[0])
				}
				if err != nil {
					return err
				}
				if all == nil {
					all = []job.TypeInfo{}
				}
				return s.show(c, all, "", func(w io.Writer) error {
					switch {
					case len(all) == 0:
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no types: engines register theirs when they start, as weir worker does")
						return err
					case len(args) > 0:
						return describeTypes(w, all)
					}
					return typeTable(w, all)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	c.AddCommand(s.complete(newTypesForget(s), typeWords))
	return s.complete(c, typeWords)
}

func newTypesForget(s *settings) *cobra.Command {
	var queue string
	c := &cobra.Command{
		Use:   "forget TYPE",
		Short: "Forget a type that no engine has any more",
		Long: `Forget a type that no engine has any more: nobody is offered it then, and weir doctor does
not warn of it. It is refused while an engine that lives has the type for the queue. An engine
that registers the type again brings it back.`,
		Example: "  weir types forget Resize\n  weir types forget Resize --queue slow",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				if err := store.ForgetType(ctx, queue, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "type %s of queue %s is forgotten\n", term.Clean(args[0]), term.Clean(queue))
				return err
			})
		},
	}
	c.Flags().StringVar(&queue, "queue", job.DefaultQueue, "the `QUEUE` that the type was registered for")
	s.completeFlag(c, "queue", queueWords)
	return c
}

// typesNamed are those of a name, one for each queue.
func typesNamed(all []job.TypeInfo, name string) ([]job.TypeInfo, error) {
	var known []string
	for _, t := range all {
		known = append(known, t.Type)
	}
	if named := slices.DeleteFunc(all, func(t job.TypeInfo) bool { return t.Type != name }); len(named) > 0 {
		return named, nil
	}
	slices.Sort(known)
	return nil, usageError{fmt.Errorf("no engine has registered a type %q: %s", term.Clean(name), port.Suggest(name, slices.Compact(known)))}
}

// messagesOf are the messages of a port in words.
func messagesOf(p *api.TypePort) string {
	var schema port.Schema
	if json.Unmarshal(p.Schema, &schema) != nil {
		return "any"
	}
	return schema.Words()
}

// arrows are those of ports.
var arrows = map[port.Dir]string{port.Input: "← ", port.Output: "→ "}

// typeTable draws types, a user's own first: there are some thirty components.
func typeTable(w io.Writer, all []job.TypeInfo) error {
	style := term.StyleOf(w)
	components := map[string]int{}
	for _, c := range component.Components(component.Policy{}) {
		components[c.JobType()] = 1
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b job.TypeInfo) int { return components[a.Type] - components[b.Type] })
	rows := [][]string{{"TYPE", "QUEUE", "PORTS", "REGISTERED"}}
	for i := range all {
		t := api.TypeOf(&all[i])
		var ports []string
		for _, p := range t.Ports {
			text := arrows[p.Dir] + term.Clean(p.Name)
			if words := messagesOf(&p); words != "any" {
				text += " " + term.Fit(term.Clean(words), messagesShown)
			}
			ports = append(ports, text)
		}
		rows = append(rows, []string{term.Clean(t.Type), term.Clean(t.Queue), strings.Join(ports, "  "), style.Age(t.Registered)})
	}
	return term.Table(w, rows, style)
}

// describeTypes draws the ports and arguments of a type: once for queues that have it alike.
func describeTypes(w io.Writer, all []job.TypeInfo) error {
	style := term.StyleOf(w)
	var texts []string
	queues := map[string][]string{}
	for i := range all {
		var b strings.Builder
		t := api.TypeOf(&all[i])
		if err := describeType(&b, &t, style); err != nil {
			return err
		}
		text := b.String()
		if queues[text] == nil {
			texts = append(texts, text)
		}
		queues[text] = append(queues[text], term.Clean(t.Queue))
	}
	for n, text := range texts {
		where := "queue "
		if len(queues[text]) > 1 {
			where = "queues "
		}
		if n > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n\n%s", style.Bold(term.Clean(all[0].Type)), where, strings.Join(queues[text], ", "), text); err != nil {
			return err
		}
	}
	return nil
}

func describeType(w io.Writer, t *api.Type, style term.Style) error {
	rows := [][]string{{"PORT", "MESSAGES", ""}}
	for _, p := range t.Ports {
		need := ""
		if p.Required {
			need = "must be fed"
		}
		rows = append(rows, []string{arrows[p.Dir] + term.Clean(p.Name), term.Clean(messagesOf(&p)), need})
	}
	tables := [][][]string{rows}
	if len(t.Params) > 0 {
		rows = [][]string{{"ARGUMENT", "TYPE"}}
		for _, p := range t.Params {
			rows = append(rows, []string{term.Clean(p.Name), term.Clean(messagesOf(&api.TypePort{Schema: port.SchemaText(p.Kind, p.Schema)}))})
		}
		tables = append(tables, rows)
	}
	if rows = limitsOf(&t.TypeInfo); len(rows) > 1 {
		tables = append(tables, rows)
	}
	for n, rows := range tables {
		if n > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := term.Table(w, rows, style); err != nil {
			return err
		}
	}
	return nil
}

// limitsOf are the lines of a table of what limits the runs of a type.
func limitsOf(t *job.TypeInfo) [][]string {
	rows := [][]string{{"LIMIT", "OF"}}
	add := func(there bool, what, of, by string) {
		if by != "" {
			of = "the jobs with one " + term.Clean(by)
		}
		if there {
			rows = append(rows, []string{what, of})
		}
	}
	add(t.MaxRunning > 0, counted(t.MaxRunning, "run")+" at once", "all its jobs", t.MaxRunningBy)
	add(t.MaxRuns > 0, counted(t.MaxRuns, "run")+" in "+t.MaxRunsPer.String(), "all its jobs", t.MaxRunsBy)
	add(t.MaxRunsPerMinute > 0, counted(t.MaxRunsPerMinute, "run")+" in a minute", "a job", "")
	add(t.Timeout > 0, t.Timeout.String(), "a run", "")
	add(t.Tries > 1, strconv.Itoa(t.Tries)+" tries", "a job", "")
	return rows
}
