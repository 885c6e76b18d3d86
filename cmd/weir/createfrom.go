package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
)

const (
	// createMany is how many lines of a file become jobs at a time.
	createMany = 1000
	maxLine    = job.MaxCommit
)

// createFrom creates the jobs that the lines of a file describe.
func createFrom(s *settings, c *cobra.Command, name string, words []string) (err error) {
	var others []string
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "from" && f.Changed {
			others = append(others, "--"+f.Name)
		}
	})
	if len(words)+len(others) > 0 {
		return usageError{fmt.Errorf("%v: with --from each line of the file says it", append(words, others...))}
	}
	in := c.InOrStdin()
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // it is the user's
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		in = f
	}
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		m := &manyJobs{store: store, client: client.New(store), out: c.OutOrStdout(), errs: c.ErrOrStderr(), name: name, types: map[string]*job.TypeInfo{}, outcomes: map[string]int{}}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			m.line++
			if err := m.add(ctx, bytes.TrimSpace(lines.Bytes())); err != nil {
				return err
			}
		}
		if err := errors.Join(m.flush(ctx), lines.Err()); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if found, merged := m.outcomes[api.OutcomeFound], m.outcomes[api.OutcomeMerged]; found+merged > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%d created; %d found under their keys, and %d merged into what was there\n", m.outcomes[api.OutcomeCreated], found, merged)
		}
		if m.failed > 0 {
			return refusedError{m.failed, m.all, m.last}
		}
		return nil
	})
}

// refusedError is of jobs that were not created, each of which was told of.
type refusedError struct {
	failed, all int
	last        error // why the last of them was not
}

func (e refusedError) Error() string {
	return fmt.Sprintf("%d of %d jobs were not created, see above", e.failed, e.all)
}

func (e refusedError) Unwrap() error { return e.last }

// manyJobs creates jobs, some at a time.
type manyJobs struct {
	store     storecall.Store
	client    *client.Client
	out, errs io.Writer
	name      string
	line      int
	types     map[string]*job.TypeInfo
	jobs      []job.New
	wrong     []error // of each of them, why it cannot be created
	at        []int   // their lines
	all       int
	failed    int
	outcomes  map[string]int // of those that were not refused
	last      error
}

// add takes a line.
func (m *manyJobs) add(ctx context.Context, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	n, err := m.parse(ctx, line)
	m.jobs, m.wrong, m.at = append(m.jobs, n), append(m.wrong, err), append(m.at, m.line)
	if len(m.jobs) < createMany {
		return nil
	}
	return m.flush(ctx)
}

func (m *manyJobs) parse(ctx context.Context, line []byte) (job.New, error) {
	one, err := api.ParseKeyedJob(line)
	if err != nil {
		return job.New{}, err
	}
	n, err := one.New(ctx, m.client, m.store.Now)
	if err == nil {
		n.By, n.Key, n.Queue = actor, one.Key, cmp.Or(n.Queue, job.DefaultQueue)
		err = checkComponent(ctx, m, n)
	}
	return n, err
}

// Type implements typeFinder: it asks once for each type.
func (m *manyJobs) Type(ctx context.Context, queue, name string) (*job.TypeInfo, error) {
	at := queue + " " + name
	if typ := m.types[at]; typ != nil {
		return typ, nil
	}
	typ, err := m.store.Type(ctx, queue, name)
	if err == nil {
		m.types[at] = typ
	}
	return typ, err
}

// flush creates those that were added.
func (m *manyJobs) flush(ctx context.Context) error {
	var some []job.New
	for i, n := range m.jobs {
		if m.wrong[i] == nil {
			some = append(some, n)
		}
	}
	started, err := m.client.CreateMany(ctx, some)
	if err != nil && !errors.As(err, new(*client.ManyError)) {
		return err
	}
	for i := range m.jobs {
		id, err := job.ID(""), m.wrong[i]
		if err == nil {
			if err = started[0].Err; err == nil {
				id = started[0].Handle.ID()
				m.outcomes[api.Outcome(started[0].Handle)]++
			}
			started = started[1:]
		}
		if m.all++; err != nil {
			m.failed, m.last = m.failed+1, err
			fmt.Fprintf(m.errs, "weir: %s: line %d: %v\n", m.name, m.at[i], err)
		}
		if _, err := fmt.Fprintln(m.out, id); err != nil {
			return err
		}
	}
	m.jobs, m.wrong, m.at = m.jobs[:0], m.wrong[:0], m.at[:0]
	return nil
}
