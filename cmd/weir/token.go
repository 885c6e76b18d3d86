package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func newToken(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of the HTTP API",
		Long: `Make, list and revoke the tokens that weir serve --tokens demands. They are kept, as
digests, in the namespace that weir serve serves; each is for a tenant, which is a
namespace, and for a role: read looks, operate also acts, work also runs jobs, admin may do
all. Through a server (--server) an admin does so with the tokens of his own tenant.`,
		Example: "  weir token create --role operate --tenant shop --name ci --ttl 90d\n  weir token list\n  weir token revoke k3v7q2m5xa",
	}
	c.AddCommand(newTokenCreate(s), newTokenList(s), s.complete(newTokenRevoke(s), tokenWords))
	return c
}

// tokens are those of a namespace beside Redis, or of the tenant behind a server.
type tokens interface {
	CreateToken(ctx context.Context, name string, role redisstore.TokenRole, tenant string, ttl time.Duration) (text string, info redisstore.TokenInfo, err error)
	Tokens(ctx context.Context) ([]redisstore.TokenInfo, error)
	RevokeToken(ctx context.Context, id string) error
}

// withTokens opens the store, beside Redis or behind a server, and calls fn with its tokens.
func (s *settings) withTokens(c *cobra.Command, fn func(ctx context.Context, store tokens) error) error {
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		return fn(ctx, store.(tokens)) //nolint:forcetypeassert // both kinds of store have them
	})
}

// tokenView is what weir token create prints as JSON.
type tokenView struct {
	Token string `json:"token"`
	redisstore.TokenInfo
}

func newTokenCreate(s *settings) *cobra.Command {
	var role, tenant, name string
	var ttl ageFlag
	c := &cobra.Command{
		Use:     "create",
		Short:   "Make a token, and print it: it is told this once",
		Example: "  weir token create --role read --name grafana\n  weir token create --role operate --tenant shop --ttl 90d -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if role == "" {
				return usageError{fmt.Errorf("--role is missing: use %s", joined(texts(redisstore.TokenRoles)))}
			}
			return s.withTokens(c, func(ctx context.Context, store tokens) error {
				text, info, err := store.CreateToken(ctx, name, redisstore.TokenRole(role), tenant, ttl.Duration)
				if err != nil {
					return err
				}
				return s.show(c, tokenView{text, info}, text, func(w io.Writer) error {
					if _, err := fmt.Fprintln(w, text); err != nil {
						return err
					}
					until := "until it is revoked"
					if !info.Expires.IsZero() {
						until = "until " + info.Expires.Format(time.RFC3339)
					}
					_, err := fmt.Fprintf(c.ErrOrStderr(), "token %s (%s) has role %s for namespace %s %s; keep it: it is not told again\n", info.ID, info.Name, info.Role, info.Tenant, until)
					return err
				})
			})
		},
	}
	roles := texts(redisstore.TokenRoles)
	c.Flags().StringVar(&role, "role", "", "what its holder may do: "+joined(roles))
	c.Flags().StringVar(&tenant, "tenant", "", "the `NAMESPACE` that it is for (default the one that it is kept in)")
	c.Flags().StringVar(&name, "name", "", "who holds it, for logs")
	c.Flags().Var(&ttl, "ttl", "how long it is valid, like 12h or 90d (default: no limit)")
	oneOfWords(c, "role", roles)
	s.formats(c, "table", "json", "yaml", "name")
	return c
}

func newTokenList(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without what would let anybody in",
		Example: "  weir token list -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.withTokens(c, func(ctx context.Context, store tokens) error {
				all, err := store.Tokens(ctx)
				if err != nil {
					return err
				}
				return s.show(c, all, "", func(w io.Writer) error {
					if len(all) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no tokens: weir token create makes one")
						return err
					}
					style := term.StyleOf(w)
					rows := [][]string{{"ID", "NAME", "ROLE", "TENANT", "AGE", "EXPIRES"}}
					for _, t := range all {
						expires := "never"
						if !t.Expires.IsZero() {
							expires = t.Expires.Format(time.RFC3339)
							if t.Expires.Before(time.Now()) {
								expires += " (over)"
							}
						}
						rows = append(rows, []string{t.ID, term.Clean(t.Name), string(t.Role), t.Tenant, style.Age(t.Created), expires})
					}
					return term.Table(w, rows, style)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

func newTokenRevoke(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a token; servers may believe it for five seconds more",
		Example: "  weir token revoke k3v7q2m5xa",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withTokens(c, func(ctx context.Context, store tokens) error {
				err := store.RevokeToken(ctx, args[0])
				if errors.Is(err, job.ErrNotFound) {
					return noToken(ctx, store, args[0])
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "token %s is revoked\n", args[0])
				return err
			})
		},
	}
}

// noToken says that there is no token with an ID, and which there are.
func noToken(ctx context.Context, store tokens, id string) error {
	all, err := store.Tokens(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	return absentError(fmt.Sprintf("there is no token %.80q: %s", id, port.Suggest(id, ids)))
}

// tokenWords are the IDs of tokens.
func tokenWords(ctx context.Context, reached storecall.Store, _ []string, _ string) ([]string, error) {
	store, ok := reached.(tokens)
	if !ok {
		return nil, nil
	}
	all, err := store.Tokens(ctx)
	var words []string
	for _, t := range all {
		words = append(words, t.ID+"\t"+strings.Join([]string{t.Name, string(t.Role), t.Tenant}, ", "))
	}
	return words, err
}
