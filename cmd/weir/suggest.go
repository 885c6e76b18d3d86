package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/port"
)

// otherNames are what people type as other programs call it so; the first of each that there is at that place is meant.
var otherNames = map[string][]string{
	"ls": {"list", "jobs"}, "ps": {"list", "jobs"}, "list": {"jobs"}, "find": {"jobs"},
	"describe": {"show"}, "get": {"show"}, "inspect": {"show"}, "info": {"show"}, "status": {"show"},
	"rm": {"delete", "discard", "remove", "revoke"}, "remove": {"delete", "discard", "revoke"}, "del": {"delete", "discard", "revoke"}, "delete": {"discard", "revoke", "remove"},
	"cancel": {"terminate"}, "kill": {"terminate"}, "stop": {"terminate", "pause"}, "abort": {"terminate"}, "end": {"terminate"},
	"ui": {"top"}, "tui": {"top"}, "watch": {"top"}, "web": {"serve"}, "page": {"serve"}, "dashboard": {"serve"}, "server": {"serve"},
	"add": {"create", "set"}, "new": {"create", "set"}, "submit": {"create"}, "enqueue": {"create"}, "start": {"create", "resume"}, "exec": {"run"},
	"logs": {"log"}, "history": {"log"}, "events": {"log"}, "health": {"doctor"}, "metrics": {"stats"}, "engines": {"workers"},
	"validate": {"check"}, "lint": {"check"}, "draw": {"graph"}, "cron": {"trigger"}, "schedule": {"trigger"}, "schedules": {"trigger"}, "triggers": {"trigger"},
	"dlq": {"dead"}, "letters": {"dead"}, "config": {"context"}, "login": {"context"}, "tokens": {"token"}, "replay": {"requeue", "retry"}, "unpause": {"resume"}, "pause": {"queue"},
	"write": {"send"}, "push": {"send"}, "pop": {"read"}, "receive": {"read"}, "explain": {"why"}, "apply": {"patch"}, "update": {"patch", "change"},
}

// otherFlags are what people type as the flag of another command, or of another program, is called so; the first of each that there is is meant.
var otherFlags = map[string][]string{
	"for": {"ttl", "timeout", "wait"}, "timeout": {"ttl", "wait"}, "duration": {"ttl", "timeout"}, "expires": {"ttl"}, "expire": {"ttl"},
	"format": {"output"}, "json": {"output"}, "follow": {"watch"}, "limit": {"number"}, "listen": {"addr"}, "addr": {"listen"}, "port": {"addr", "listen"}, "count": {"number"}, "host": {"redis", "server"}, "url": {"redis", "server"},
}

// otherFlag says which of the flags of a command was perhaps meant, or else what is given.
func otherFlag(name string, flags []string, otherwise string) string {
	for _, other := range otherFlags[name] {
		if slices.Contains(flags, "--"+other) {
			return fmt.Sprintf("did you mean %q?", "--"+other)
		}
	}
	return otherwise
}

// subcommand refuses words behind a command that only has others below it, and says which of these was perhaps meant.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
		}
	}
	hint := "see " + c.CommandPath() + " --help"
	i := slices.IndexFunc(otherNames[args[0]], func(name string) bool { return slices.Contains(known, name) })
	if i >= 0 {
		hint = fmt.Sprintf("did you mean %q?", otherNames[args[0]][i])
	} else if s := port.Suggest(args[0], known); strings.HasPrefix(s, "did you mean") || len(known) < 12 {
		hint = s
	}
	return usageError{fmt.Errorf("unknown command %.80q for %q: %s", args[0], c.CommandPath(), hint)}
}

// withSubcommands lets each command that only has others below it say so, and which was meant. One that does something by itself, as weir
// types, stays as it is.
func withSubcommands(c *cobra.Command) {
	for _, below := range c.Commands() {
		withSubcommands(below)
	}
	if c.HasSubCommands() && (c.RunE == nil || !c.HasParent()) {
		c.Args = subcommand
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		if list := lister(c); list != nil {
			c.Long = cmp.Or(c.Long, c.Short+".") + "\n\nAlone it is " + list.CommandPath() + "."
			c.RunE = func(c *cobra.Command, _ []string) error {
				list.SetContext(c.Context())
				if err := list.PreRunE(list, nil); err != nil {
					return err
				}
				return list.RunE(list, nil)
			}
		}
	}
}

// withHelp lets help about a command that there is not be an error, which the function that it returns tells: cobra shows that of the command above,
// as if all were well.
func withHelp(root *cobra.Command) (wrong func() error) {
	var err error
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.HasSubCommands() { // of others the words are theirs
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err == nil {
			show(c, args)
		}
	})
	root.InitDefaultHelpCmd()
	if help, _, found := root.Find([]string{"help"}); found == nil {
		help.Args = func(_ *cobra.Command, words []string) error {
			c, rest, err := root.Find(words)
			if err == nil && c.HasSubCommands() {
				err = c.ValidateArgs(rest)
			}
			return err
		}
	}
	return func() error { return err }
}

// lister is the command below another one that lists what it is about, if there is one.
func lister(c *cobra.Command) *cobra.Command {
	for _, below := range c.Commands() {
		if below.Name() == "list" && below.PreRunE != nil {
			return below
		}
	}
	return nil
}
