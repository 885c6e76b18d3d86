package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func newState(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "state",
		Short:   "Read and change the state of a job",
		Example: "  weir state get album-2026\n  weir state set album-2026 cursor=17",
	}
	get := &cobra.Command{
		Use:     "get JOB [KEY]...",
		Short:   "Print the state of a job, or some keys of it",
		Example: "  weir state get album-2026 cursor -o json",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				all, err := h.State(ctx, args[1:]...)
				if err != nil {
					return err
				}
				return errors.Join(s.show(c, all, "", func(w io.Writer) error { return stateTable(w, all) }), noKeys(h.ID(), all, args[1:]))
			})
		},
	}
	s.formats(get, "table", "json", "yaml")
	set := &cobra.Command{
		Use:     "set JOB KEY=VALUE...",
		Short:   "Set keys of a job's state; a VALUE that is not valid JSON is a text",
		Example: "  weir state set album-2026 cursor=17 mood=good",
		Args:    usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			values := make(map[string]any)
			for _, pair := range args[1:] {
				key, value, ok := strings.Cut(pair, "=")
				if !ok || key == "" {
					return usageError{fmt.Errorf("%q: write it as KEY=VALUE", pair)}
				}
				raw, err := value2json(value)
				if err != nil {
					return usageError{fmt.Errorf("%s: %w", key, err)}
				}
				values[key] = raw
			}
			return s.act(c, args[0], "has new state", func(ctx context.Context, h *client.Handle) error { return h.SetState(ctx, values) })
		},
	}
	unset := &cobra.Command{
		Use:     "unset JOB KEY...",
		Short:   "Remove keys of a job's state",
		Example: "  weir state unset album-2026 cursor",
		Args:    usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.act(c, args[0], "has new state", func(ctx context.Context, h *client.Handle) error { return h.UnsetState(ctx, args[1:]...) })
		},
	}
	c.AddCommand(s.completeRest(get, jobWords, keyWords), s.completeRest(set, jobWords, pairWords), s.completeRest(unset, jobWords, keyWords))
	return c
}

func stateTable(w io.Writer, all map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if _, err := fmt.Fprintf(w, "%s = %s\n", term.Clean(key), term.Clean(string(all[key]))); err != nil {
			return err
		}
	}
	return nil
}

// absentError says what there is not, other than a job.
type absentError string

func (e absentError) Error() string { return string(e) }

// Is makes it count as what is not found.
func (absentError) Is(target error) bool { return target == job.ErrNotFound }

// noKeys is an error if keys that were asked for are not in a state.
func noKeys(id job.ID, state map[string]json.RawMessage, asked []string) error {
	var missing []string
	for _, key := range asked {
		if _, has := state[key]; !has {
			missing = append(missing, strconv.Quote(key))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return absentError(fmt.Sprintf("the state of job %s has no %s", id, joined(missing)))
}

func newAlias(s *settings) *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:     "alias JOB ALIAS",
		Short:   "Give a job one more name, or take it away",
		Example: "  weir alias 019e1f0e album-2026\n  weir alias album-2026 album-2026 --remove",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.act(c, args[0], "has other names now", func(ctx context.Context, h *client.Handle) error {
				if remove {
					return h.RemoveAlias(ctx, args[1])
				}
				return h.AddAlias(ctx, args[1])
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "take the name away")
	return c
}

func newAdopt(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "adopt PARENT CHILD NAME",
		Short:   "Make a root job the child of another",
		Example: "  weir adopt album-2026 019e1f0e covers",
		Args:    usage(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, client *client.Client, parent *client.Handle) error {
				child, err := find(ctx, client, args[1])
				if err != nil {
					return err
				}
				if err := parent.Adopt(ctx, child, args[2]); err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "job %s is %s of job %s\n", child.ID(), args[2], parent.ID())
				return err
			})
		},
	}
}

func newDisown(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "disown PARENT NAME",
		Short:   "Make a child of a job a root job",
		Example: "  weir disown album-2026 covers",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.act(c, args[0], "has one child less", func(ctx context.Context, h *client.Handle) error { return h.Disown(ctx, args[1]) })
		},
	}
}
