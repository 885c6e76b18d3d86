package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

func newAudit(s *settings) *cobra.Command {
	var n int
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what over HTTP, the last acts first",
		Long: `Show who did what over HTTP, the last acts first: each request to weir serve that changes
something, or was not allowed to. A namespace remembers the last 10,000.`,
		Example: "  weir audit -n 20\n  weir audit -o jsonl | jq 'select(.status == 403)'",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkNumber(n); err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				all, err := store.AuditLog(ctx, n)
				if err != nil {
					return err
				}
				if s.output == "jsonl" {
					for _, e := range all {
						if err := encode(c.OutOrStdout(), e, ""); err != nil {
							return err
						}
					}
					return nil
				}
				return s.show(c, all, "", func(w io.Writer) error {
					if len(all) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "nobody did anything over HTTP")
						return err
					}
					return auditTable(w, all)
				})
			})
		},
	}
	c.Flags().IntVarP(&n, "number", "n", 100, "at most `N`")
	s.formats(c, "table", "json", "jsonl", "yaml")
	s.watched(c)
	return c
}

func auditTable(w io.Writer, all []redisstore.AuditEntry) error {
	style := term.StyleOf(w)
	rows := [][]string{{"AGE", "WHO", "ROLE", "STATUS", "OPERATION", "PATH"}}
	for _, e := range all {
		rows = append(rows, []string{style.Age(e.At), term.Clean(e.Principal), string(e.Role), strconv.Itoa(e.Status), e.Operation, term.Clean(strings.TrimSpace(e.Path + " " + e.On))})
	}
	return term.Table(w, rows, style)
}
