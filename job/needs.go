package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Versioned is implemented by worker structs whose args or state are no longer what they were. Version is that of what the
// struct reads and writes: 1 is that of a struct without the method, and each change that older programs cannot read counts
// on by one. A job whose args or state a newer version has written waits for an engine that has that version.
type Versioned interface {
	Version() int
}

// VersionOf returns the version of a worker struct: what Version says, else 1. The error wraps ErrConfig.
func VersionOf(w any) (int, error) {
	v, ok := w.(Versioned)
	if !ok {
		return 1, nil
	}
	if n := v.Version(); n < 1 || n > MaxVersion {
		return 0, fmt.Errorf("%w: version %d of %T: use 1 (that of a type without Version) to %d, and one more for each change", ErrConfig, n, w, MaxVersion)
	}
	return v.Version(), nil
}

// MaxVersion is the greatest version of a type.
const MaxVersion = 10_000

// maxRefused is how many builds are remembered that could not run a job: an older one may try again.
const maxRefused = 8

// Needs is what an engine must be able to do to run a job, besides having its type. Ready jobs that need more than their
// type lie in sets of their own, so that an engine is given only what it can decode.
type Needs struct {
	Type string
	// Version is that of the type which wrote the job's args or state last; 0 or 1: any has it.
	Version int
	// Args and State are the versions that wrote these.
	Args, State int
	// Refused are builds of engines that could not decode args or state, or that left the job to others, see worker.Elsewhere.
	Refused []string
	// Unread are builds of engines that could not decode a message which waits for the job.
	Unread []string
}

// ParseNeeds reads what String and Written make.
func ParseNeeds(text, written string) Needs {
	name, more, _ := strings.Cut(text, "@")
	n := Needs{Type: name}
	end := strings.IndexAny(more+"!", "!?")
	n.Version, _ = strconv.Atoi(more[:end])
	for more = more[end:]; more != ""; {
		kind, rest := more[0], more[1:]
		end := strings.IndexAny(rest+"!", "!?")
		if more = rest[end:]; kind == '!' {
			n.Refused = append(n.Refused, rest[:end])
		} else {
			n.Unread = append(n.Unread, rest[:end])
		}
	}
	n.Version = max(n.Version, 1)
	n.Args, n.State = n.Version, n.Version
	if args, state, ok := strings.Cut(written, ","); ok {
		n.Args, _ = strconv.Atoi(args)
		n.State, _ = strconv.Atoi(state)
	}
	return n
}

// Plain tells whether the job needs no more than its type.
func (n *Needs) Plain() bool { return n.Version <= 1 && len(n.Refused)+len(n.Unread) == 0 }

// String is how a store calls the type of such jobs: the type and, if that is not all, an @, the version, and ! or ? and
// a build for each that cannot decode them.
func (n *Needs) String() string {
	if n.Plain() {
		return n.Type
	}
	var b strings.Builder
	b.WriteString(n.Type + "@")
	if n.Version > 1 {
		b.WriteString(strconv.Itoa(n.Version))
	}
	for _, build := range n.Refused {
		b.WriteString("!" + build)
	}
	for _, build := range n.Unread {
		b.WriteString("?" + build)
	}
	return b.String()
}

// Words is the type, and which version of it the job needs, for people: Mail, or Mail (version 2).
func (n *Needs) Words() string {
	if n.Version > 1 {
		return fmt.Sprintf("%s (version %d)", n.Type, n.Version)
	}
	return n.Type
}

// Written is which versions wrote args and state, as text.
func (n *Needs) Written() string { return strconv.Itoa(n.Args) + "," + strconv.Itoa(n.State) }

// Refuse returns the needs of a job that an engine of a build cannot decode: for a message that waits, or for good. again
// tells that so many could not that the oldest of them is forgotten, and may try again.
func (n Needs) Refuse(build string, message bool) (_ Needs, again bool) {
	list := &n.Refused
	if message {
		list = &n.Unread
	}
	if slices.Contains(*list, build) {
		return n, false
	}
	*list = append(slices.Clone(*list), build)
	if again = len(*list) > maxRefused; again {
		*list = (*list)[1:]
	}
	return n, again
}

// MetBy tells whether an engine may run the job that asks for jobs of these types.
func (n *Needs) MetBy(types []string) bool {
	name := n.Type
	if n.Version > 1 {
		name = Takes(n.Type, n.Version)
	}
	return slices.Contains(types, name) && !slices.ContainsFunc(n.Refused, func(b string) bool { return slices.Contains(types, Refuses(b)) }) &&
		!slices.ContainsFunc(n.Unread, func(b string) bool { return slices.Contains(types, Refuses(b)) })
}

// Takes is how an engine says, among the types that it asks for, that it has a version of a type.
func Takes(name string, version int) string { return name + "@" + strconv.Itoa(version) }

// Refuses is how an engine says there of which build it is, so that it is not given what that cannot decode.
func Refuses(build string) string { return "!" + build }

// NeedsOf returns what an engine must have to run the job.
func (i *Info) NeedsOf() Needs {
	if i.Needs == nil {
		return Needs{Type: i.Type, Version: 1, Args: 1, State: 1}
	}
	return *i.Needs
}
