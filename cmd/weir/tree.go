package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	// sameShown is how many children of a job that are alike are shown.
	sameShown = 10
	// levelsShown is how deep a tree is shown unless a flag says otherwise.
	levelsShown = 20
	// newestLooked is how many of the newest jobs are looked at for one that is running.
	newestLooked = 50
)

// treeFlags are those of weir tree.
type treeFlags struct {
	depth      int
	all, watch bool
	every      time.Duration
}

func newTree(s *settings) *cobra.Command {
	var f treeFlags
	c := &cobra.Command{
		Use:   "tree [JOB]",
		Short: "Draw the tree that a job belongs to",
		Long: `Draw the tree that a job belongs to: each job with its status, its age, how long a run
in progress has taken so far, the number of its commits, and for each port the messages
that wait, those that ever passed, and whether it is closed. Without JOB it is the newest
tree that is active, or else the newest.

Of many jobs that are alike only some are shown, and the others counted; --all shows all
of them. The other formats always have all. --watch draws again and again until Ctrl-C:
in place on a terminal, else whenever something has changed.`,
		Example: "  weir tree\n  weir tree album-2026 --watch\n  weir tree 019e1f0e --depth 2\n  weir tree 019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11 -o json",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.validate(c, s.output); err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				debug.SetGCPercent(400) // all that is read is kept until it is printed
				t := treeSource{store: store, client: client.New(store), args: args, notes: c.ErrOrStderr()}
				if f.watch {
					t.notes = io.Discard
					return f.follow(c, &t)
				}
				tree, err := t.read(ctx)
				if err != nil {
					return err
				}
				return s.show(c, api.TreeOf(tree), string(tree[0].ID), func(w io.Writer) error {
					o := f.options()
					if o.Locks, err = t.locks(ctx, tree); err != nil {
						return err
					}
					return term.DrawTree(w, tree, term.StyleOf(w), o)
				})
			})
		},
	}
	c.Flags().IntVar(&f.depth, "depth", levelsShown, "show `N` levels below the first job; 0 for all")
	c.Flags().BoolVar(&f.all, "all", false, "show each job, also of many that are alike")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "draw again and again, until Ctrl-C")
	spanVar(c.Flags(), &f.every, "interval", time.Second, "how often --watch looks")
	s.formats(c, outputs...)
	return c
}

// validate refuses flags that make no sense together.
func (f *treeFlags) validate(c *cobra.Command, output string) error {
	switch {
	case f.depth < 0:
		return usageError{fmt.Errorf("--depth %d: use a positive number, or 0 for all levels", f.depth)}
	case f.every <= 0:
		return usageError{fmt.Errorf("--interval %s: use a positive time, like 500ms", f.every)}
	case f.watch && output != "table":
		return usageError{fmt.Errorf("--watch draws pictures: use it without -o %s, or run weir tree again and again", output)}
	}
	if f.all && !c.Flags().Changed("depth") {
		f.depth = 0
	}
	return nil
}

func (f *treeFlags) options() term.TreeOptions {
	o := term.TreeOptions{Depth: f.depth, Same: sameShown, Times: true}
	if f.all {
		o.Same = 0
	}
	return o
}

// treeSource reads the tree that a command line means.
type treeSource struct {
	store  store.Locks
	client *client.Client
	args   []string
	notes  io.Writer // for what else there is
}

func (t *treeSource) read(ctx context.Context) ([]*job.Info, error) {
	name := ""
	if len(t.args) > 0 {
		name = t.args[0]
	} else {
		var err error
		if name, err = t.newest(ctx); err != nil {
			return nil, err
		}
	}
	h, err := find(ctx, t.client, name)
	if err != nil {
		return nil, err
	}
	return h.Tree(ctx)
}

// locks returns the locks of the jobs of a tree that may run, now or when a message comes.
func (t *treeSource) locks(ctx context.Context, tree []*job.Info) (map[job.ID]job.LockInfo, error) {
	var ids []job.ID
	for _, i := range tree {
		if !i.Graph && i.Status != statemachine.Terminated {
			ids = append(ids, i.ID)
		}
	}
	all := map[job.ID]job.LockInfo{}
	for some := range slices.Chunk(ids, 1000) {
		locks, err := t.store.Locked(ctx, some...)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, locks)
	}
	return all, nil
}

// newest returns the ID of the newest root that is running, or of the newest.
func (t *treeSource) newest(ctx context.Context) (string, error) {
	var roots []*job.Info
	for i, err := range t.client.Jobs(ctx, job.Filter{}) {
		if err != nil {
			return "", err
		}
		if roots = append(roots, i); len(roots) == newestLooked {
			break
		}
	}
	if len(roots) == 0 {
		return "", fmt.Errorf("%w: there are no jobs yet; make some with weir run or weir create", job.ErrNotFound)
	}
	found, others := roots[0], -1
	for _, i := range roots {
		if i.Status.Settled() || i.Status == statemachine.Failed {
			continue
		}
		if others++; others == 0 {
			found = i
		}
	}
	switch {
	case others == 1:
		fmt.Fprintln(t.notes, "weir: another tree is active: weir jobs lists them")
	case others > 1:
		fmt.Fprintf(t.notes, "weir: %d other trees are active: weir jobs lists them\n", others)
	}
	return string(found.ID), nil
}

// follow draws the tree until the user ends it.
func (f *treeFlags) follow(c *cobra.Command, source *treeSource) error {
	screen := &treeScreen{out: term.Plain(c.OutOrStdout()), options: f.options(), began: time.Now()}
	if term.IsTerminal(screen.out) {
		screen.live = term.NewLive(screen.out)
	}
	return endure(c, f.every, screen.keep, func(ctx context.Context) error {
		tree, err := source.read(ctx)
		if err != nil && (len(source.args) > 0 || !errors.Is(err, job.ErrNotFound)) {
			return err
		}
		if screen.options.Locks, err = source.locks(ctx, tree); err != nil {
			return err
		}
		return screen.show(tree)
	})
}

// treeScreen shows a tree that changes.
type treeScreen struct {
	out     io.Writer
	live    *term.Live // nil if out is no terminal
	options term.TreeOptions
	began   time.Time
	shown   string // the last picture, as it would have been at the beginning
}

// keep leaves what is drawn on the screen.
func (s *treeScreen) keep() {
	if s.live != nil {
		s.live.Keep()
	}
}

func (s *treeScreen) show(tree []*job.Info) error {
	style := term.StyleOf(s.out)
	if s.live != nil {
		picture, err := s.draw(tree, style)
		if err == nil {
			s.live.Draw(style, strings.Split(strings.TrimSuffix(picture, "\n"), "\n")...)
		}
		return err
	}
	still := style
	still.Now = s.began // so that the passing of time is no change
	now, err := s.draw(tree, still)
	if err != nil || now == s.shown {
		return err
	}
	picture, err := s.draw(tree, style)
	if err != nil {
		return err
	}
	if s.shown != "" {
		picture = "\n" + picture
	}
	s.shown = now
	_, err = io.WriteString(s.out, picture)
	return err
}

func (s *treeScreen) draw(tree []*job.Info, style term.Style) (string, error) {
	if len(tree) == 0 {
		return "no jobs\n", nil
	}
	var b bytes.Buffer
	err := term.DrawTree(&b, tree, style, s.options)
	return b.String(), err
}
