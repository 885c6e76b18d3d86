package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of labels.
const (
	MaxLabels     = 32  // of one job
	MaxLabelKey   = 63  // bytes
	MaxLabelValue = 255 // bytes
)

// Label puts a label on the root of the tree, or on the child. Labels are short texts by which jobs are
// found again, see [Filter]. A tree that exists already keeps those it was created with.
func Label(key, value string) ChildOption {
	return childOption(func(o *Choices) {
		if o.labels == nil {
			o.labels = make(map[string]string)
		}
		o.labels[key] = value
	})
}

// CheckLabel reports whether a label may be used: a key of 1 to MaxLabelKey letters, digits
// and '_', '-', '.', '/', a value of up to MaxLabelValue bytes of printable UTF-8. The error
// wraps ErrName.
func CheckLabel(key, value string) error {
	if err := CheckLabelKey(key); err != nil {
		return err
	}
	if len(value) > MaxLabelValue {
		return fmt.Errorf("%w: the value of label %s has %d bytes, at most %d are allowed", ErrName, key, len(value), MaxLabelValue)
	}
	unclean := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unclean) {
		return fmt.Errorf("%w: the value %q of label %s: use printable UTF-8 in one line", ErrName, value, key)
	}
	return nil
}

// CheckLabelKey is CheckLabel for the key alone.
func CheckLabelKey(key string) error {
	bad := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("_-./", r)
	}
	if key == "" || len(key) > MaxLabelKey || strings.ContainsFunc(key, bad) {
		return fmt.Errorf("%w: key %.80q of a label: use 1 to %d letters, digits and _ - . /", ErrName, key, MaxLabelKey)
	}
	return nil
}

// CheckLabels reports whether a job may have these labels: at most MaxLabels, and each of
// them as CheckLabel wants it.
func CheckLabels(labels map[string]string) error {
	if len(labels) == 0 {
		return nil // and nothing to sort, as of most jobs
	}
	if len(labels) > MaxLabels {
		return fmt.Errorf("%w: %d labels, at most %d are allowed", ErrTooLarge, len(labels), MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := CheckLabel(key, labels[key]); err != nil {
			return err
		}
	}
	return nil
}

// labelled returns the plan with more labels on its root. The plan given is not changed: its
// planner may give it to others.
func (p *Plan) labelled(labels map[string]string) *Plan {
	if len(labels) == 0 || len(p.Nodes) == 0 {
		return p
	}
	more := *p
	more.Nodes = slices.Clone(p.Nodes)
	all := maps.Clone(labels)
	for k, v := range p.Nodes[0].Labels {
		if _, given := labels[k]; !given {
			all[k] = v
		}
	}
	more.Nodes[0].Labels = all
	return &more
}
