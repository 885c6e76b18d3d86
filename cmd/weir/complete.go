package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// completed is how many jobs completion offers, and how long it may take.
const (
	completed      = 50
	completionTime = 2 * time.Second
)

// complete lets the shell complete the words of a command: those at the places of jobs with
// IDs and aliases, and behind the first job the names of its ports, if ports is set.
func (s *settings) complete(c *cobra.Command, jobs int, ports bool) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= jobs && (!ports || len(args) > jobs) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()
		store, err := s.open(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer store.Close()
		var words []string
		if len(args) < jobs {
			words, err = jobWords(ctx, store)
		} else {
			words, err = portWords(ctx, store, args[0])
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, start) }), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// jobWords are the last jobs and their aliases, with what they are.
func jobWords(ctx context.Context, store *redisstore.Store) ([]string, error) {
	var words []string
	client := job.NewClient(store)
	_, err := chunks(ctx, client, job.Filter{}, completed, func(list []*job.Info) error {
		all, err := views(ctx, client, list)
		for _, v := range all {
			about := "\t" + v.Type + ", " + v.Status
			for _, a := range v.Aliases {
				words = append(words, a+about)
			}
			words = append(words, string(v.ID)+about)
		}
		return err
	})
	return words, err
}

func portWords(ctx context.Context, store *redisstore.Store, name string) ([]string, error) {
	h, err := job.NewClient(store).Find(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, p := range info.Ports {
		words = append(words, p.Name+"\t"+p.Dir.String())
	}
	return words, nil
}
