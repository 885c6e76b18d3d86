package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirworks/weir/job"
)

// spanVar defines a flag for a span of time, in days, too: 500ms, 30s, 1h30m, 2d.
func spanVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var((*spanFlag)(to), name, usage)
}

// spanFlag is the value of such a flag.
type spanFlag time.Duration

// Type implements pflag.Value.
func (*spanFlag) Type() string { return "duration" }

// String implements pflag.Value.
func (f *spanFlag) String() string {
	if *f == 0 {
		return ""
	}
	return time.Duration(*f).String()
}

// Set implements pflag.Value.
func (f *spanFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = job.ParseRetention(text) // which knows days
	}
	if err != nil || d == job.Forever {
		return errors.New("use a time like 500ms, 30s, 10m, 1h30m or 2d")
	}
	*f = spanFlag(d)
	return nil
}
