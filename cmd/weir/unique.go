package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirworks/weir/job"
)

// uniqueFlags say by what a job is unique.
type uniqueFlags struct {
	on bool
	by job.UniqueBy
}

func (u *uniqueFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&u.on, "unique", false, "only if no job of the type with the same args is there that has not settled")
	flags.StringVar(&u.by.Key, "unique-key", "", "only if no job with this `KEY` is there")
	spanVar(flags, &u.by.For, "unique-for", 0, "only if no such job was created in that time, whether it has settled or not")
}

// value is by what the job is unique; nil: by nothing.
func (u *uniqueFlags) value(flags *pflag.FlagSet) (*job.UniqueBy, error) {
	switch {
	case flags.Changed("unique-key") && u.by.Key == "":
		return nil, emptyKey("unique-key")
	case flags.Changed("unique-for") && u.by.For == 0:
		return nil, usageError{errors.New("--unique-for 0s: give a positive time, like 1h, or leave it out for until the job is done")}
	case u.by.Merge && u.by.Key == "":
		return nil, usageError{errors.New("--merge is for a job that is there with the same --unique-key: give one")}
	case u.on || u.by != job.UniqueBy{}:
		return &u.by, nil
	}
	return nil, nil //nolint:nilnil // it is not to be unique
}

// filled refuses flags that are given an empty text, as by a variable of a script that is not set.
func filled(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return emptyKey(name)
		}
	}
	return nil
}

// emptyKey refuses a flag whose text is empty.
func emptyKey(flag string) error {
	return usageError{fmt.Errorf("--%s is empty: give a text, or leave it out", flag)}
}
