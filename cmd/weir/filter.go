package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// filterFlags say which jobs are meant.
type filterFlags struct {
	status       []string
	typ, queue   string
	labels       []string
	alias        string
	path, name   string
	states       []string
	sequential   string
	unique       string
	older, newer ageFlag
	blocked      bool
	all          bool
}

// filters are the names of those flags of which a command needs one to act on many jobs.
var filters = []string{"status", "type", "queue", "label", "alias", "path", "name", "state", "sequential-key", "unique-key", "blocked", "older", "newer"}

func (f *filterFlags) flags(s *settings, c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.status, "status", nil, "jobs with this `STATUS`, or one of several: failed,queued")
	flags.StringVar(&f.typ, "type", "", "jobs of this `TYPE`, or graphs of this name")
	flags.StringVar(&f.queue, "queue", "", "jobs of this `QUEUE`")
	flags.StringArrayVar(&f.labels, "label", nil, "jobs with this label, `KEY[=VALUE]`, or without it, '!KEY'; repeated: all of them")
	flags.StringVar(&f.alias, "alias", "", "jobs with an alias like this `PATTERN`: album-* or ?1")
	flags.StringVar(&f.path, "path", "", "jobs that this `PATH` leads to: 'shop/pay/*', 'shop/**' for shop and all below it, 'album-*/thumbs'")
	flags.StringVar(&f.name, "name", "", "children with a name like this `PATTERN`: 'pay-*'")
	flags.StringArrayVar(&f.states, "state", nil, "jobs whose state has this `KEY`; repeated: all of them")
	flags.StringVar(&f.sequential, "sequential-key", "", "jobs of trees with this `KEY`")
	flags.StringVar(&f.unique, "unique-key", "", "the job with this `KEY`, and those that had it before and are kept")
	flags.BoolVar(&f.blocked, "blocked", false, "jobs that wait because a port that they wrote to is full")
	flags.Var(&f.older, "older", "jobs created more than this time `AGO`: 90s, 5m, 2h, 3d")
	flags.Var(&f.newer, "newer", "jobs created less than this time `AGO`")
	flags.BoolVar(&f.all, "all", false, "jobs below others, too")
	someOfWords(c, "status", texts(statemachine.Statuses()))
	s.completeFlag(c, "type", typeWords)
	s.completeFlag(c, "queue", queueWords)
}

// given returns the names of the filters on the command line.
func (f *filterFlags) given(c *cobra.Command) (names []string) {
	for _, name := range filters {
		if c.Flags().Changed(name) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// ages adds to a filter how old jobs are to be, by the clock that they go by.
func (f *filterFlags) ages(ctx context.Context, store storecall.Store, filter *job.Filter) error {
	older, newer := f.older.Duration, f.newer.Duration
	if older == 0 && newer == 0 {
		return nil
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if older > 0 {
		filter.Until = now.Add(-older)
	}
	if newer > 0 {
		filter.Since = now.Add(-newer)
	}
	return nil
}

// filter makes a filter of the flags but for ages, or says what is wrong with them.
func (f *filterFlags) filter(c *cobra.Command) (job.Filter, error) {
	empty := map[string]bool{"status": len(f.status) == 0, "type": f.typ == "", "queue": f.queue == "", "alias": f.alias == "", "path": f.path == "", "name": f.name == "", "state": slices.Contains(f.states, ""), "sequential-key": f.sequential == "", "unique-key": f.unique == ""}
	for _, name := range filters {
		if empty[name] && c.Flags().Changed(name) { // an unset variable of a script must not mean all jobs
			return job.Filter{}, usageError{fmt.Errorf("--%s is empty", name)}
		}
	}
	out := job.Filter{
		Type: f.typ, Queue: f.queue, Alias: f.alias, Path: f.path, Name: f.name, StateKeys: f.states, SequentialKey: f.sequential, UniqueKey: f.unique, Blocked: f.blocked, All: f.all, Labels: map[string]string{},
	}
	for _, text := range f.status {
		if err := known("status", text, texts(statemachine.Statuses())); err != nil {
			return out, err
		}
		out.Status = append(out.Status, statemachine.Status(text))
	}
	for _, label := range f.labels {
		if without, not := strings.CutPrefix(label, "!"); not {
			out.Without = append(out.Without, without)
			continue
		}
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			out.Keys = append(out.Keys, key)
			continue
		}
		if other, twice := out.Labels[key]; twice && other != value {
			return out, usageError{fmt.Errorf("--label %s: no job has it with two values", key)}
		}
		out.Labels[key] = value
	}
	older, newer := f.older.Duration, f.newer.Duration
	if older > 0 && newer > 0 && newer <= older {
		return out, usageError{fmt.Errorf("no job is older than %s and newer than %s", f.older.text, f.newer.text)}
	}
	return out, validFilter(out)
}

// known refuses the value of a flag that is none of the known ones, and offers the nearest.
func known(flag, value string, words []string) error {
	if oneOf(flag, value, words) == nil {
		return nil
	}
	return usageError{fmt.Errorf("unknown %s %q: %s", flag, value, port.Suggest(value, words))}
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// labelsOf reads labels that a job is to have.
func labelsOf(pairs []string) (map[string]string, error) {
	labels := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--label %q: write it as KEY=VALUE", pair)}
		}
		if _, twice := labels[key]; twice {
			return nil, usageError{fmt.Errorf("--label %s is given twice", key)}
		}
		labels[key] = value
	}
	if err := job.CheckLabels(labels); err != nil {
		return nil, usageError{err}
	}
	return labels, nil
}

// ageFlag is a time that has passed, in days, too: 90s, 5m, 2h, 3d, 1d12h.
type ageFlag struct {
	time.Duration
	text string
}

// Type implements pflag.Value.
func (a *ageFlag) Type() string { return "age" }

// String implements pflag.Value.
func (a *ageFlag) String() string { return a.text }

// Set implements pflag.Value.
func (a *ageFlag) Set(text string) error {
	d, err := job.ParseRetention(text)
	if err != nil || d == job.Forever {
		return errors.New("use a time like 90s, 5m, 2h or 3d")
	}
	a.Duration, a.text = d, text
	return nil
}
