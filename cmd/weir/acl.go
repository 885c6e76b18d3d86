package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/redisstore"
)

func newACL(s *settings) *cobra.Command {
	var functions bool
	var kits []string
	c := &cobra.Command{
		Use:   "acl worker|reader",
		Short: "Print which rules a user of Redis needs for a namespace",
		Long: `Print which rules a user of Redis needs for a namespace, as ACL SETUSER takes them: worker
for processes that run jobs and for people who act, reader for those who only look. Such
a user reaches no key of another namespace, neither directly nor from within a script.
Nothing is asked of Redis, and passwords are not touched: set one with '>PASSWORD'.

With --functions a worker may load Weir's scripts as a function of the server, which makes
commits faster. Give it only where all namespaces of the Redis trust each other: a user
who may load functions may replace those of others. Without it, anybody who may, such
as an administrator who sends a message with this version of Weir, loads it for all.`,
		Example: "  weir acl worker --namespace shop | xargs redis-cli ACL SETUSER shop-worker on '>secret'\n  weir acl reader | xargs redis-cli ACL SETUSER viewer on '>secret'",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := s.config()
			if err != nil {
				return err
			}
			rules, err := redisstore.ACL{Role: redisstore.Role(args[0]), Functions: functions, WorkKit: kits}.Rules(cfg)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(rules, " "))
			return err
		},
		ValidArgs: []string{string(redisstore.RoleWorker), string(redisstore.RoleReader)},
	}
	c.Flags().BoolVar(&functions, "functions", false, "let a worker load functions, which makes it faster")
	c.Flags().StringSliceVar(&kits, "workkit", nil, "`NAMES` of WorkKit schedules whose keys the user needs, too: all workers of the namespace, if one serves them")
	s.completeFlag(c, "workkit", kitWords)
	return c
}
