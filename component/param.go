package component

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Duration is a time span as a parameter: in JSON a text such as "1.5s" or "200ms", of
// whole milliseconds.
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%.40q is not a duration: write it like "1.5s", "30m" or "24h"`, text)
	}
	*d = Duration(v)
	return nil
}

// check collects what is wrong with the parameters of a component.
type check struct{ bad []string }

func (c *check) add(format string, args ...any) { c.bad = append(c.bad, fmt.Sprintf(format, args...)) }

// is adds a complaint unless ok.
func (c *check) is(ok bool, format string, args ...any) {
	if !ok {
		c.add(format, args...)
	}
}

func (c *check) err(of job.TypeNamer) error {
	if len(c.bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w of %s: %s", job.ErrConfig, of.JobType(), strings.Join(c.bad, "; "))
}

// expr checks an expression. An empty one is allowed only if it is optional.
func (c *check) expr(name, source string, sc scope, optional bool) {
	if source == "" && optional {
		return
	}
	if _, err := compile(source, sc); err != nil {
		c.add("%s: %v", name, err)
	}
}

func (c *check) oneOf(name, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.add("%s %q: use %s", name, value, strings.Join(allowed, ", "))
	}
}

// onError checks the parameter of that name.
func (c *check) onError(value string) {
	c.oneOf("on_error", value, OnErrorFail, OnErrorSkip, OnErrorPort)
}

// positive checks a duration that must be given.
func (c *check) positive(name string, d Duration) {
	if c.span(name, d); d == 0 {
		c.add("%s is missing", name)
	}
}

// span checks a duration that may be zero.
func (c *check) span(name string, d Duration) {
	c.is(d >= 0 && time.Duration(d)%time.Millisecond == 0,
		"%s %s: use a positive number of whole milliseconds", name, time.Duration(d))
}

func (c *check) count(name string, n int) { c.is(n >= 0, "%s %d is negative", name, n) }

// ports checks the names of ports given as a parameter; least is how many are needed.
func (c *check) ports(name string, names []string, least int, reserved ...string) {
	c.is(len(names) >= least, "%s: name at least %d ports", name, least)
	seen := map[string]bool{}
	for _, n := range names {
		if err := port.CheckName(n); err != nil {
			c.add("%s: %v", name, err)
		}
		c.is(!seen[n], "%s: port %q is named twice", name, n)
		c.is(!slices.Contains(reserved, n), "%s: port %q has another use, choose another name", name, n)
		seen[n] = true
	}
}

// named returns the ports that a parameter names. A component that is registered, rather
// than placed in a plan, has no parameters yet: it admits any.
func named(dir port.Dir, names []string) []port.Spec {
	if len(names) == 0 {
		names = []string{port.Any}
	}
	var specs []port.Spec
	for _, n := range names {
		specs = append(specs, port.Spec{Name: n, Dir: dir, Type: "json.RawMessage"})
	}
	return specs
}

// needed returns the In ports that a parameter names of a component that waits for all of them.
func needed(names []string) []port.Spec {
	specs := named(port.Input, names)
	for i := range specs {
		specs[i].Required = specs[i].Name != port.Any
	}
	return specs
}
