package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/term"
)

// Cents is an amount of money.
type Cents int64

var amount = regexp.MustCompile(`^(\d{1,12})(?:\.(\d\d))?$`)

// parseCents reads an amount such as 12 or 12.50.
func parseCents(s string) (Cents, error) {
	m := amount.FindStringSubmatch(s)
	if m == nil {
		return 0, usagef("%.40q is no amount; write it like 900 or 12.50", s)
	}
	n, err := strconv.ParseInt(m[1]+m[2]+strings.Repeat("0", 2-len(m[2])), 10, 64)
	return Cents(n), err
}

// String is like 1,234.50.
func (c Cents) String() string {
	return fmt.Sprintf("%s.%02d", term.Number(int64(c/100)), c%100)
}

// Set implements pflag.Value.
func (c *Cents) Set(s string) (err error) {
	*c, err = parseCents(s)
	return err
}

// Type implements pflag.Value.
func (*Cents) Type() string { return "AMOUNT" }
