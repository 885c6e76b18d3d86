package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// fewest is of how many jobs the same is said only once.
const fewest = 3

// part is what was said of one of several jobs.
type part struct {
	job     *job.Info
	reasons []Because
}

// several has each of some jobs explained: of many that have the same status, some. What is the same of several of them is said once.
func (t *Tree) several(list []*job.Info, level int, explain func(c *job.Info)) {
	said, more := make(map[statemachine.Status]int), make(map[statemachine.Status]int)
	var parts []part
	start := len(t.reasons)
	for _, c := range list {
		if t.Most > 0 && said[c.Status] == t.Most {
			if !t.told[c.ID] {
				more[c.Status]++
			}
			continue
		}
		from := len(t.reasons)
		if explain(c); len(t.reasons) > from { // else all was told before
			said[c.Status]++
			parts = append(parts, part{c, slices.Clone(t.reasons[from:])})
		}
	}
	t.reasons = t.reasons[:start]
	t.fold(parts, level)
	for _, status := range statemachine.Statuses() {
		if n := more[status]; n > 0 {
			root := t.tree[0]
			t.say(root, level, Because{Text: fmt.Sprintf("and %s more jobs that are %s:", term.Number(int64(n)), status), Command: "weir tree " + t.Call(root)})
		}
	}
}

// fold says what there is to say of several jobs; what differs in nothing but their names, and since when, once.
func (t *Tree) fold(parts []part, level int) {
	alike := make(map[string][]*job.Info)
	keys := make([]string, len(parts))
	for n, p := range parts {
		keys[n] = t.gist(p)
		alike[keys[n]] = append(alike[keys[n]], p.job)
	}
	for n, p := range parts {
		group := alike[keys[n]]
		if len(group) >= fewest && p.job != group[0] {
			continue
		}
		t.reasons = append(t.reasons, p.reasons...)
		if len(group) < fewest {
			continue
		}
		var names []string
		for _, c := range group[1:] {
			if len(names) == alikeNames && len(group) > alikeNames+2 {
				names = append(names, term.Number(int64(len(group)-1-alikeNames))+" more")
				break
			}
			names = append(names, t.Path(c))
		}
		t.say(group[1], level, Because{Text: fmt.Sprintf("the same is true of %s more jobs: %s", term.Number(int64(len(group)-1)), listed(names))})
	}
}

// alikeNames is how many jobs are named of which the same is true.
const alikeNames = 5

// gist is what was said of a job without its names and without since when it is so.
func (t *Tree) gist(p part) string {
	var b strings.Builder
	who := []string{string(p.job.ID), "\x00", t.Call(p.job), "\x00", t.Path(p.job), "\x00", "child " + p.job.Name + ", ", "\x00"}
	for _, r := range p.reasons {
		hide := who
		if !r.Since.IsZero() {
			hide = append(slices.Clip(hide), t.lasting(r.Since), "\x01", t.style.Ago(r.Since), "\x01")
		}
		of := strings.NewReplacer(hide...)
		fmt.Fprintf(&b, "%d %s\n%s\n", r.Level, of.Replace(r.Text), of.Replace(r.Command))
	}
	return b.String()
}
