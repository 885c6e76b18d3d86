package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func newDoctor(s *settings) *cobra.Command {
	var deep bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a Redis and a namespace, and say what to do about what is found",
		Long: `Examine a Redis and a namespace, and say what to do about what is found: whether jobs
are safe there (version, memory, disk, replicas, permissions), whether engines do their
work (late jobs, work left over by crashes, queues and types that nobody serves), whether
ports of the oldest and newest trees only grow, and with --deep whether each job is
where it belongs and ports of all. Nothing is changed.

--deep looks at all keys of the namespace, in batches with pauses between them; what
looks wrong is looked at once more two seconds later.

Exit code 0 if there is no problem, though there may be warnings, 1 if there is one, and 7
if Redis cannot be reached.`,
		Example: "  weir doctor\n  weir doctor --deep\n  weir doctor -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			x := redisstore.Examination{Deep: deep}
			clean := func() {}
			if w := c.ErrOrStderr(); deep && term.IsTerminal(w) {
				x.Progress, clean = progress(w)
			}
			findings, err := s.examine(c.Context(), x)
			if clean(); err != nil {
				return err
			}
			if err := s.show(c, findings, "", func(w io.Writer) error { return drawFindings(w, findings, term.StyleOf(w)) }); err != nil {
				return err
			}
			return verdict(findings)
		},
	}
	c.Flags().BoolVar(&deep, "deep", false, "look at all keys of the namespace, too")
	s.formats(c, "table", "json", "yaml")
	return c
}

// examine examines what the flags name. A Redis that Open refuses is examined, too.
func (s *settings) examine(ctx context.Context, x redisstore.Examination) ([]redisstore.Finding, error) {
	e, err := s.resolve()
	if err != nil {
		return nil, err
	}
	if e.server.Value == "" {
		cfg, err := s.config()
		if err != nil {
			return nil, err
		}
		return redisstore.Examine(ctx, cfg, x)
	}
	store, err := s.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.Examine(ctx, x)
}

// progress returns what shows on a terminal how far a deep look is, and what removes it.
func progress(w io.Writer) (show func(done, all int64), clean func()) {
	live := term.NewLive(w)
	return func(done, all int64) {
		live.Draw(term.StyleOf(w), fmt.Sprintf("looked at %s of about %s keys", term.Number(done), term.Number(all)))
	}, live.Clear
}

// verdict is an error if there is a problem.
func verdict(findings []redisstore.Finding) error {
	n := levels(findings)[redisstore.Problem]
	if n == 0 {
		return nil
	}
	if strings.HasPrefix(findings[0].Finding, job.ErrUnreachable.Error()) { // then it is the only one
		return fmt.Errorf("%s found: %w", counted(n, "problem"), job.ErrUnreachable)
	}
	return fmt.Errorf("%s found", counted(n, "problem"))
}

func levels(findings []redisstore.Finding) map[redisstore.Level]int {
	n := map[redisstore.Level]int{}
	for _, f := range findings {
		n[f.Level]++
	}
	return n
}

// drawFindings prints findings for people, with what to do below each.
func drawFindings(w io.Writer, findings []redisstore.Finding, style term.Style) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %-*s  %s\n", levelMark(f.Level, style), width, f.Check, term.Clean(f.Finding))
		if f.Fix != "" {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, "", style.Faint("→ "+term.Clean(f.Fix)))
		}
	}
	n := levels(findings)
	fmt.Fprintf(&b, "\n%d ok, %d skipped, %s, %s\n", n[redisstore.OK], n[redisstore.Skipped], counted(n[redisstore.Warning], "warning"), counted(n[redisstore.Problem], "problem"))
	_, err := io.WriteString(w, b.String())
	return err
}

// levelMark is the symbol of a level.
func levelMark(level redisstore.Level, style term.Style) string {
	switch level {
	case redisstore.Problem:
		return style.Bold("✗")
	case redisstore.Warning:
		return style.Bold("!")
	case redisstore.Skipped:
		return style.Faint("-")
	default:
		return style.Accent("✓")
	}
}
