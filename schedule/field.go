package schedule

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// fieldCount is how many fields there are, in words.
func fieldCount(n int) string {
	if n == 1 {
		return "1 field"
	}
	return strconv.Itoa(n) + " fields"
}

// field is one of the fields of a cron expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on; empty if there are only numbers
	question bool     // ? stands for *
	from     bool     // N/S is N-max/S
}

var (
	monthNames = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	dayNames   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// span is a part of a field: every step-th value from lo to hi.
type span struct{ lo, hi, step int }

// values is what a field allows.
type values struct {
	spans []span
	any   bool // all values: nothing is restricted
	star  bool // begins with a star
	open  bool // says that nothing is restricted: * or ?
}

// bits has a bit for each value.
func (v values) bits() uint64 {
	var set uint64
	for _, s := range v.spans {
		for n := s.lo; n <= s.hi; n += s.step {
			set |= 1 << n
		}
	}
	return set
}

// has tells whether a value is allowed.
func (v values) has(n int) bool {
	return slices.ContainsFunc(v.spans, func(s span) bool {
		return n >= s.lo && n <= s.hi && (n-s.lo)%s.step == 0
	})
}

// single is the only value, if there is only one.
func (v values) single() (int, bool) {
	if len(v.spans) != 1 || v.spans[0].lo+v.spans[0].step <= v.spans[0].hi {
		return 0, false
	}
	return v.spans[0].lo, true
}

// all is what a star allows.
func (f field) all() values {
	return values{spans: []span{{f.min, f.max, 1}}, any: true, star: true, open: true}
}

// parse reads a field: a list of stars, values and ranges, with steps.
func (f field) parse(text string) (values, *Error) {
	v := values{star: strings.HasPrefix(text, "*")}
	for item := range strings.SplitSeq(text, ",") {
		s, err := f.item(item)
		if err != nil {
			return v, err
		}
		v.spans = append(v.spans, s)
		if s == (span{f.min, f.max, 1}) {
			v.any = true
			v.open = v.open || item == "*" || item == "?"
		}
	}
	return v, nil
}

// item reads one of the parts of a field that commas separate.
func (f field) item(text string) (span, *Error) {
	whole, step, stepped := strings.Cut(text, "/")
	s := span{f.min, f.max, 1}
	low, high, ranged := strings.Cut(whole, "-")
	var err *Error
	switch {
	case whole == "*", whole == "?" && f.question && !stepped:
	case ranged:
		if s.lo, err = f.value(low); err == nil {
			s.hi, err = f.value(high)
		}
		if err == nil && s.lo > s.hi {
			err = f.refuse(text, "%s goes backwards: a range does not wrap around, write it as two", quote(text))
		}
	default:
		if s.lo, err = f.value(whole); !stepped {
			s.hi = s.lo
		} else if !f.from && err == nil {
			err = f.refuse(text, "%s is not allowed here: a step needs a range, such as */%s or %d-%d/%s", quote(text), step, f.min, f.max, step)
		}
	}
	if err != nil || !stepped {
		return s, err
	}
	n, ok := number(step)
	if !ok || n < 1 {
		return s, f.refuse(text, "the step of %s is not a number from 1 on", quote(text))
	}
	s.step = n
	return s, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, *Error) {
	if n, ok := number(text); ok {
		if n < f.min || n > f.max {
			hint := ""
			if f.name == weekdayField.name && n == 7 {
				hint = " (Sunday is 0)"
			}
			return 0, f.refuse(text, "%s is out of range: use %d to %d%s", text, f.min, f.max, hint)
		}
		return n, nil
	}
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}
	e := f.refuse(text, "%s is not understood: use %s", quote(text), f.allowed())
	if text != "" {
		e.Known = f.names
	}
	return 0, e
}

// allowed says what a field may hold.
func (f field) allowed() string {
	say := strconv.Itoa(f.min) + " to " + strconv.Itoa(f.max)
	if len(f.names) > 0 {
		say += ", " + strings.ToUpper(f.names[0]) + " to " + strings.ToUpper(f.names[len(f.names)-1])
	}
	if f.question {
		return say + ", * or ?"
	}
	return say + " or *"
}

func (f field) refuse(word, format string, args ...any) *Error {
	e := refuse(f.name, format, args...)
	e.Word = word
	return e
}

// number reads digits, and nothing but digits.
func number(text string) (int, bool) {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// next is the lowest bit from n on; -1 if there is none.
func next(set uint64, n int) int {
	if n > 63 || set>>n == 0 {
		return -1
	}
	return n + bits.TrailingZeros64(set>>n)
}
