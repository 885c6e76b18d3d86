package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

func newContext(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "context",
		Short: "Keep what commands work with (Redis or server, namespace, keys) under a name",
		Long: `Keep the Redis or the server, the namespace and the keys that commands work with, under
names, in the file $WEIR_CONFIG, or else weir/config.yaml in the directory for the user's
configuration.

What holds is, in this order: --redis, --server, --token-file, --namespace and --keys; the
context that --context names; $WEIR_REDIS_URL, $WEIR_SERVER, $WEIR_TOKEN_FILE,
$WEIR_NAMESPACE and $WEIR_KEYS; the context that $WEIR_CONTEXT names; and if neither a
Redis nor a server is given so, the current context. The name none stands for no context
at all. Of keys and of the token for a server, the context has the path of their file.`,
		Example: "  weir context set prod --redis rediss://weir:secret@redis.example.com --namespace shop\n  weir context use prod\n  weir jobs --context staging",
	}
	c.AddCommand(newContextList(s), newContextUse(), newContextSet(s), newContextRemove(), newContextShow(s))
	return c
}

// contextView is a context as it is printed: never with a password.
type contextView struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	Redis     string `json:"redis"`
	Server    string `json:"server"` // in place of a Redis
	Namespace string `json:"namespace"`
	Color     string `json:"color"`
}

func newContextList(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the contexts",
		Example: "  weir context list",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := readContexts()
			if err != nil {
				return err
			}
			s.warn(f)
			views := []contextView{}
			for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
				one := f.Contexts[name]
				views = append(views, contextView{
					Name: name, Current: name == f.Current, Redis: masked(one.Redis), Server: one.Server,
					Namespace: cmp.Or(one.Namespace, ofToken(one.Server), redisstore.DefaultNamespace), Color: cmp.Or(one.Color, colorModes[0]),
				})
			}
			return s.show(c, views, "", func(w io.Writer) error {
				if len(views) == 0 {
					_, err := fmt.Fprintf(c.ErrOrStderr(), "no contexts in %s: weir context set NAME --redis URL makes one\n", f.path)
					return err
				}
				return contextTable(w, views)
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

// ofToken says that the namespace behind a server is that of the token; it is empty without one.
func ofToken(server string) string {
	if server == "" {
		return ""
	}
	return "(the token's)"
}

// masked is a URL without its password.
func masked(url string) string {
	if url == "" {
		return ""
	}
	shown, _ := redisconn.Mask(url) // one that is wrong is told of when it is used
	return shown
}

func contextTable(w io.Writer, views []contextView) error {
	rows := [][]string{{"", "NAME", "REDIS OR SERVER", "NAMESPACE", "COLOR"}}
	for _, v := range views {
		mark := ""
		if v.Current {
			mark = "*"
		}
		rows = append(rows, []string{mark, v.Name, term.Clean(orDash(cmp.Or(v.Redis, v.Server))), v.Namespace, v.Color})
	}
	return term.Table(w, rows, term.StyleOf(w))
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:     "use NAME",
		Short:   "Make a context the current one, or with none have no current one",
		Example: "  weir context use prod\n  weir context use none",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return changeContexts(c, "context "+args[0]+" is the current one", func(f *contextFile) error {
				if args[0] == noContext {
					f.Current = ""
					return nil
				}
				_, err := f.find(args[0], "")
				f.Current = args[0]
				return err
			})
		},
		ValidArgsFunction: contextWords,
	}
}

func newContextSet(s *settings) *cobra.Command {
	var color string
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a context, or change one: what is not given stays",
		Long: `Make a context, or change one: what is not given stays. The file is for its owner alone
to read. A password on a command line stays in the history of the shell: put it into the
file with an editor if that matters.`,
		Example: "  weir context set prod --redis rediss://redis.example.com --namespace shop\n  weir context set prod --color never",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return changeContexts(c, "context "+args[0]+" is set", func(f *contextFile) (err error) {
				one, known := f.Contexts[args[0]]
				given := namedContext{Redis: s.redis, Server: s.server, TokenFile: s.tokenFile, Namespace: s.namespace, Keys: s.keys, Color: color}
				if !known && given.Redis == "" && given.Server == "" {
					return usageError{fmt.Errorf("context %s is new: give its Redis, like --redis redis://localhost:6379, or its --server", args[0])}
				}
				if given == (namedContext{}) {
					return usageError{fmt.Errorf("nothing to change: give --redis, --server, --token-file, --namespace, --keys or --color")}
				}
				if given.Redis != "" {
					if _, err := redisconn.Mask(given.Redis); err != nil {
						return err
					}
				}
				if given.Server != "" {
					if err := (httpstore.Config{URL: given.Server}).Validate(); err != nil {
						return usageError{err}
					}
				}
				for _, path := range []*string{&given.Keys, &given.TokenFile} {
					if *path == "" {
						continue
					}
					if *path, err = filepath.Abs(*path); err != nil {
						return err
					}
				}
				switch {
				case given.Redis != "" && given.Server != "":
				case given.Redis != "":
					one.Server, one.TokenFile = "", ""
				case given.Server != "":
					one.Redis, one.Keys = "", ""
				}
				one = namedContext{
					Redis: cmp.Or(given.Redis, one.Redis), Server: cmp.Or(given.Server, one.Server), TokenFile: cmp.Or(given.TokenFile, one.TokenFile),
					Namespace: cmp.Or(given.Namespace, one.Namespace), Keys: cmp.Or(given.Keys, one.Keys), Color: cmp.Or(given.Color, one.Color),
				}
				f.Contexts[args[0]] = one
				if err := checkContext(args[0], one); err != nil {
					return usageError{err}
				}
				return nil
			})
		},
		ValidArgsFunction: contextWords,
	}
	c.Flags().StringVar(&color, "color", "", strings.Join(colorModes, ", ")+": when what is printed has colors")
	return c
}

func newContextRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a context",
		Example: "  weir context remove staging",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return changeContexts(c, "context "+args[0]+" is removed", func(f *contextFile) error {
				_, err := f.find(args[0], "")
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return err
			})
		},
		ValidArgsFunction: contextWords,
	}
}

// changeContexts reads the file, changes it, writes it and says what was done.
func changeContexts(c *cobra.Command, done string, change func(f *contextFile) error) error {
	f, err := readContexts()
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	if err := f.write(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), done)
	return err
}

// effectiveView is what weir context show prints as JSON.
type effectiveView struct {
	File      string  `json:"file"`
	Context   string  `json:"context"` // empty for none
	Redis     setting `json:"redis"`
	Server    setting `json:"server"`     // in place of a Redis
	TokenFile setting `json:"token_file"` // path of the file with the token for it
	Namespace setting `json:"namespace"`
	Keys      setting `json:"keys"` // path of their file
	Color     setting `json:"color"`
}

func newContextShow(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show which settings hold, and where each comes from",
		Example: "  weir context show\n  weir context show --context staging",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := contextPath()
			if err != nil {
				return err
			}
			e, err := s.resolve()
			if err != nil {
				return err
			}
			v := effectiveView{File: path, Context: e.context, Redis: e.redis, Server: e.server, TokenFile: e.tokenFile, Namespace: e.namespace, Keys: e.keys, Color: e.color}
			v.Redis.Value = masked(v.Redis.Value)
			if v.Namespace.From == "default" && v.Server.Value != "" {
				v.Namespace = setting{ofToken(v.Server.Value), v.Server.From}
			}
			return s.show(c, v, "", func(w io.Writer) error {
				rows := [][]string{{"SETTING", "VALUE", "FROM"}}
				for _, one := range []struct {
					name string
					setting
				}{{"context", setting{v.Context, ""}}, {"redis", v.Redis}, {"server", v.Server}, {"token file", v.TokenFile}, {"namespace", v.Namespace}, {"keys", v.Keys}, {"color", v.Color}, {"file", setting{v.File, ""}}} {
					rows = append(rows, []string{one.name, term.Clean(orDash(one.Value)), term.Clean(one.From)})
				}
				return term.Table(w, rows, term.StyleOf(w))
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

// contextWords completes names of contexts.
func contextWords(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	f, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		if strings.HasPrefix(name, start) {
			words = append(words, name+"\t"+cmp.Or(masked(f.Contexts[name].Redis), f.Contexts[name].Server))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
