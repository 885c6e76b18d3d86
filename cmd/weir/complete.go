package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
)

// completed is how many jobs completion offers, and how long it may take.
const (
	completed      = 50
	completionTime = 2 * time.Second
)

// words finds what completion offers behind the words that are there, for one that begins with start. It may find others, too.
type words func(ctx context.Context, store storecall.Store, args []string, start string) ([]string, error)

// complete lets the shell complete the words of a command: for each place what is offered
// there. Behind the last place it offers files.
func (s *settings) complete(c *cobra.Command, places ...words) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(places) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return s.offer(c, places[len(args)], args, start), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// completeRest is complete for commands whose last place is for many words.
func (s *settings) completeRest(c *cobra.Command, places ...words) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		place := places[min(len(args), len(places)-1)]
		all, directive := s.offer(c, place, args, start), cobra.ShellCompDirectiveNoFileComp
		if len(all) > 0 && strings.HasSuffix(all[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace // a value comes
		}
		return all, directive
	}
	return c
}

// completeFile is complete for commands of a FILE or a JOB: if no job fits, it offers files.
func (s *settings) completeFile(c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.offer(c, jobWords, args, start), cobra.ShellCompDirectiveDefault
	}
	return c
}

// completeRestFile is completeFile for any number of words.
func (s *settings) completeRestFile(c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.offer(c, jobWords, args, start), cobra.ShellCompDirectiveDefault
	}
	return c
}

// completeFlag lets the shell complete the value of a flag, which the command has.
func (s *settings) completeFlag(c *cobra.Command, flag string, w words) {
	_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.offer(c, w, args, start), cobra.ShellCompDirectiveNoFileComp
	})
}

// offer returns the words that begin so. A shell shows no errors: then there are none.
func (s *settings) offer(c *cobra.Command, w words, args []string, start string) []string {
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	store, err := s.reach(ctx)
	if err != nil {
		return nil
	}
	defer store.Close()
	all, err := w(ctx, store, args, start)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(word string) bool { return !strings.HasPrefix(word, start) })
}

// oneOfWords completes the value of a flag, which the command has, with words that are fixed.
func oneOfWords(c *cobra.Command, flag string, known []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// someOfWords is oneOfWords for a flag that takes several, with commas between them.
func someOfWords(c *cobra.Command, flag string, known []string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		before := start[:strings.LastIndex(start, ",")+1]
		var all []string
		for _, word := range known {
			if strings.HasPrefix(before+word, start) {
				all = append(all, before+word)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	})
}

// jobWords are the last jobs and their aliases, with what they are; behind a slash the children of the job in front of it.
func jobWords(ctx context.Context, store storecall.Store, _ []string, start string) ([]string, error) {
	client := client.New(store)
	words, err := below(ctx, client, start)
	if err != nil || len(words) > 0 {
		return words, err
	}
	_, err = chunks(ctx, client, job.Filter{}, completed, func(list []*job.Info) error {
		all, err := api.JobsOf(ctx, store, list)
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

// below are the paths of children that begin so; none if no job is in front of a slash.
func below(ctx context.Context, client *client.Client, start string) (words []string, err error) {
	for at := strings.LastIndexByte(start, '/'); at > 0; at = strings.LastIndexByte(start[:at], '/') { // names may have slashes
		h, err := client.Find(ctx, start[:at])
		if errors.Is(err, job.ErrNotFound) || errors.Is(err, job.ErrID) {
			continue
		}
		if err != nil {
			return nil, err
		}
		children, err := h.Children(ctx)
		for _, name := range slices.Sorted(maps.Keys(children)) {
			if len(words) < completed && strings.HasPrefix(name, start[at+1:]) {
				words = append(words, start[:at+1]+name)
			}
		}
		return words, err
	}
	return nil, nil
}

// portWords are the ports of the job that the first word names.
func portWords(ctx context.Context, store storecall.Store, args []string, _ string) ([]string, error) {
	h, err := client.New(store).Find(ctx, args[0])
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

// keyWords are the keys of the state of the job that the first word names, without those
// that are there already.
func keyWords(ctx context.Context, store storecall.Store, args []string, _ string) ([]string, error) {
	h, err := client.New(store).Find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	state, err := h.State(ctx)
	keys := slices.Sorted(maps.Keys(state))
	return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(args[1:], key) }), err
}

// pairWords are keyWords for KEY=VALUE.
func pairWords(ctx context.Context, store storecall.Store, args []string, start string) ([]string, error) {
	keys, err := keyWords(ctx, store, args, start)
	for i := range keys {
		keys[i] += "="
	}
	return keys, err
}

// childWords are the names of the children of the job that the first word names.
func childWords(ctx context.Context, store storecall.Store, args []string, _ string) ([]string, error) {
	h, err := client.New(store).Find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	children, err := h.Children(ctx)
	return slices.Sorted(maps.Keys(children)), err
}

// typeWords are the types that engines have registered.
func typeWords(ctx context.Context, store storecall.Store, _ []string, _ string) ([]string, error) {
	all, err := store.Types(ctx)
	var words []string
	for _, t := range all {
		if !slices.Contains(words, t.Type) {
			words = append(words, t.Type)
		}
	}
	return words, err
}

// queueWords are the queues that are known.
func queueWords(ctx context.Context, store storecall.Store, _ []string, _ string) ([]string, error) {
	all, err := store.Queues(ctx)
	var words []string
	for _, q := range all {
		words = append(words, fmt.Sprintf("%s\t%d pending", q.Name, q.Pending))
	}
	return words, err
}
