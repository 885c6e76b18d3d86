package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Path is a job's names from the root down: those that commands take, if the root has an alias.
func (t *Tree) Path(i *job.Info) string {
	name := cmp.Or(i.Name, i.Type)
	if t.Alias != "" && i.ID.IsRoot() {
		return t.Alias
	}
	if up := t.jobs[i.Parent]; up != nil {
		return t.Path(up) + "/" + name
	}
	return name
}

// Named notes the alias of the root, which commands call it by, too: that which the user called it by, if it has several.
func (t *Tree) Named(aliases []string) {
	if len(aliases) == 0 {
		return
	}
	t.Alias = aliases[0]
	root := t.tree[0].ID.Tree()
	switch called := t.Called[root]; {
	case slices.Contains(aliases, called):
		t.Alias = called
	case called == "":
		if t.Called == nil {
			t.Called = map[job.ID]string{}
		}
		t.Called[root] = t.Alias
	}
}

// calls notes what the user calls a job, and with it those that it is below.
func (t *Tree) calls(id job.ID, called string) {
	t.Called = map[job.ID]string{id: called}
	for i := t.jobs[id]; i != nil && i.Name != ""; i = t.jobs[i.Parent] {
		above, ok := strings.CutSuffix(t.Called[i.ID], "/"+i.Name)
		if !ok || above == "" {
			return
		}
		t.Called[i.Parent] = above
	}
}

// Call is what commands call a job: as the user does, by its path below one that the user has named, or its ID.
func (t *Tree) Call(i *job.Info) string {
	path := ""
	for up := i; up != nil; up = t.jobs[up.Parent] {
		if called := t.Called[up.ID]; called != "" {
			return called + path
		}
		if job.CheckName("job", up.Name) != nil {
			break
		}
		path = "/" + up.Name + path
	}
	return string(i.ID)
}

// sources returns the ports where what comes to a port is written: through graphs, whose
// ports only pass on.
func (t *Tree) sources(ref job.PortRef) []job.PortRef {
	var out []job.PortRef
	seen := map[job.PortRef]bool{}
	var follow func(ref job.PortRef)
	follow = func(ref job.PortRef) {
		if seen[ref] {
			return
		}
		seen[ref] = true
		for _, from := range t.feeds[ref] {
			switch {
			case !t.jobs[from.Job].Graph:
				out = append(out, from)
			case from.Dir == port.Input && len(t.feeds[from]) == 0:
				out = append(out, from) // comes from outside
			default:
				follow(from)
			}
		}
	}
	follow(ref)
	return out
}

// reaches returns the ports that keep what a job writes.
func (t *Tree) reaches(i *job.Info) []job.PortRef {
	var out []job.PortRef
	seen := map[job.PortRef]bool{}
	var follow func(p job.PortInfo)
	follow = func(p job.PortInfo) {
		for _, edge := range p.Edges {
			for _, end := range edge {
				at := t.jobs[end.Job]
				if at == nil || seen[end] {
					continue
				}
				seen[end] = true
				if q, _ := at.Port(end.Dir, end.Port); q.Wired {
					follow(q)
				} else {
					out = append(out, end)
				}
			}
		}
	}
	for _, p := range i.Ports {
		if p.Dir == port.Output {
			follow(p)
		}
	}
	return out
}

// lasting is how long something has been so: "for 3m".
func (t *Tree) lasting(since time.Time) string {
	if t.style.ISO {
		return "since " + t.style.Age(since)
	}
	return "for " + t.style.Age(since)
}

// slept says since when a job has been doing nothing, as far as is known.
func (t *Tree) slept(i *job.Info) string {
	if i.Ran.IsZero() {
		return ""
	}
	return ", since its last run " + t.style.Ago(i.Ran) + ","
}

// in is a time to come: " in 24s, at 13:52:07Z".
func (t *Tree) in(at time.Time) string {
	if t.style.ISO {
		return " at " + t.style.Age(at)
	}
	left := max(at.Sub(t.style.Now).Round(time.Second), time.Second)
	clock := "15:04:05Z"
	if left > 24*time.Hour {
		clock = time.RFC3339
	}
	return fmt.Sprintf(" in %s, at %s", term.Duration(left), at.UTC().Format(clock))
}

func (t *Tree) next(i *job.Info) string {
	if i.Next.IsZero() {
		return ""
	}
	if !i.Next.After(t.style.Now) {
		return ", which is due"
	}
	return ", which is" + t.in(i.Next)
}

// stopped says that a failed job repeats no more.
func stopped(i *job.Info) string {
	if i.Repeat == nil {
		return ""
	}
	return ", and repeats no more until it is retried"
}

// tries says how often a job has failed in a row, if more than once.
func tries(i *job.Info) string {
	if i.Tries < 2 {
		return ""
	}
	return fmt.Sprintf(", for the %s time in a row", ordinal(i.Tries))
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// wait is "1 message waits" or "n messages wait".
func wait(n int64) string {
	if n == 1 {
		return "1 message waits"
	}
	return term.Number(n) + " messages wait"
}

func messages(n int64) string {
	if n == 1 {
		return "1 message"
	}
	return term.Number(n) + " messages"
}

// crashes says how many runs of a job crashed since its last commit, if more than one did.
func crashes(i *job.Info) string {
	if i.Crashes < 2 {
		return ""
	}
	return fmt.Sprintf("; its last %d runs ended without a word: their processes died, or were cut off; look at what they printed", i.Crashes)
}

// serving is "1 engine that serves queue q" or "n engines that serve queue q".
func serving(n int, queue string) string {
	verb := "serve"
	if n == 1 {
		verb = "serves"
	}
	return fmt.Sprintf("%s that %s queue %s", engineCount(n), verb, queue)
}

// engineCount is "1 engine" or "n engines".
func engineCount(n int) string {
	if n == 1 {
		return "1 engine"
	}
	return term.Number(int64(n)) + " engines"
}

// FirstLine is a text up to its first line break; … says that there is more.
func FirstLine(s string) string {
	line, more, _ := strings.Cut(s, "\n")
	if strings.TrimSpace(more) != "" {
		line = strings.TrimRight(line, " ") + " …"
	}
	return line
}

// listed joins words: a, b and c.
func listed(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
