package job

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Filter says which jobs to list, and in which order. Its zero value is for all jobs
// without parent, the newest first.
type Filter struct {
	Status  []statemachine.Status // one of these; none means any
	Type    string                // worker type, or name of a graph
	Queue   string
	Labels  map[string]string // all of these
	Keys    []string          // labels with these keys, whatever their values
	Without []string          // no label with any of these keys
	// Alias is a pattern that one of the job's aliases matches: * stands for any characters,
	// ? for one, [a-z] for one of these.
	Alias string
	// Path is a path of names with patterns in it: shop/pay/* are the children of shop/pay. In front of its first pattern it is
	// what Find takes; the first name may be a pattern of aliases. As in an alias, * stands for any characters of a name; a name
	// that is ** stands for any number of names, none included: shop/** is shop and all below it.
	Path string
	// Name is a pattern of the name that the job has as a child. It includes All, as do Path and Below.
	Name string
	// Below is a job below which Path begins; without a Path only the job itself is meant.
	Below ID
	// StateKeys are keys that the job's state has, whatever their values: all of these.
	StateKeys []string
	// SequentialKey and UniqueKey are those of the job's tree, see the functions of these names. Only a root has a unique key.
	SequentialKey, UniqueKey string
	// Blocked is for jobs that wait because a port that they wrote to is full. It includes All.
	Blocked bool
	// Since and Until limit when the job was created: not before, and before. A job without
	// parent was created when its ID was made.
	Since, Until time.Time
	// All is for jobs below others, too.
	All   bool
	Order Order
	// After leaves out all up to this job, in the order asked for.
	After ID
}

// Order is an order of jobs in a list. Where it does not tell, the newest come first.
type Order string

// The orders. By their creation jobs are listed as they are found; any other order needs
// all that pass the filter to be looked at before the first of them is known. Jobs of one
// tree are in the order of their numbers; an adopted tree may come with the one that
// adopted it.
const (
	Newest   Order = "-created" // the newest first; an empty Order means this
	Oldest   Order = "created"
	LastRan  Order = "-ran" // those whose last run began last
	FirstRan Order = "ran"
	ByStatus Order = "status" // in the order of a job's life
	ByType   Order = "type"
)

// Orders returns all orders.
func Orders() []Order { return []Order{Newest, Oldest, LastRan, FirstRan, ByStatus, ByType} }

// ByCreation tells whether the order is one of creation.
func (o Order) ByCreation() bool { return o == "" || o == Newest || o == Oldest }

// Compare is negative if a comes before b, and positive if it comes after it.
func (o Order) Compare(a, b *Info) int {
	by := 0
	switch o {
	case Oldest:
		return a.ID.Compare(b.ID)
	case LastRan:
		by = b.Ran.Compare(a.Ran)
	case FirstRan:
		by = a.Ran.Compare(b.Ran)
	case ByStatus:
		all := statemachine.Statuses()
		by = cmp.Compare(slices.Index(all, a.Status), slices.Index(all, b.Status))
	case ByType:
		by = strings.Compare(a.Type, b.Type)
	case Newest:
	}
	return cmp.Or(by, b.ID.Compare(a.ID))
}

// Validate reports the first thing in the filter that no job could pass.
func (f *Filter) Validate() error {
	for _, s := range f.Status {
		if all := statemachine.Statuses(); !slices.Contains(all, s) {
			return fmt.Errorf("%w: status %.40q: %s", ErrName, string(s), suggest(string(s), all))
		}
	}
	if f.Order != "" && !slices.Contains(Orders(), f.Order) {
		return fmt.Errorf("%w: order %.40q: %s", ErrName, string(f.Order), suggest(string(f.Order), Orders()))
	}
	if f.Type != "" {
		if err := CheckName("type", f.Type); err != nil {
			return err
		}
	}
	if f.Queue != "" {
		if err := CheckName("queue", f.Queue); err != nil {
			return err
		}
	}
	for _, key := range slices.Concat(f.Keys, f.Without) {
		if err := CheckLabelKey(key); err != nil {
			return err
		}
	}
	if err := f.checkNames(); err != nil {
		return err
	}
	for _, id := range []ID{f.After, f.Below} {
		if id == "" {
			continue
		}
		if _, err := ParseID(string(id)); err != nil {
			return err
		}
	}
	return CheckLabels(f.Labels)
}

func suggest[T ~string](word string, known []T) string {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return port.Suggest(word, words)
}

// checkNames reports the first thing in the patterns and keys that no job could pass.
func (f *Filter) checkNames() error {
	if f.Alias != "" && (f.Path != "" || f.Below != "") {
		return fmt.Errorf("%w: an alias and a path both say which jobs are meant: use one of them; a path may begin with a pattern of aliases", ErrName)
	}
	for what, pattern := range map[string]string{"name": f.Name, "path": f.Path, "alias": f.Alias} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%w: %s %.80q: a [ has no ]: write \\[ for the letter", ErrName, what, pattern)
		}
	}
	if f.Path != "" && slices.Contains(strings.Split(f.Path, "/"), "") {
		return fmt.Errorf("%w: path %.80q has an empty name in it: write it as shop/pay/*", ErrName, f.Path)
	}
	for _, key := range f.StateKeys {
		if err := CheckStateKey(key); err != nil {
			return err
		}
	}
	for kind, key := range map[string]string{"sequential": f.SequentialKey, "unique": f.UniqueKey} {
		if key != "" {
			if err := checkKeyText(kind, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// MatchName tells whether a name is as a pattern says: * stands for any characters, ? for one, [a-z] for one of these. A
// pattern that is malformed matches nothing.
func MatchName(pattern, name string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") } // which path.Match holds for no letter
	ok, err := path.Match(flat(pattern), flat(name))
	return ok && err == nil
}

// IsPattern tells whether a name has letters that stand for others.
func IsPattern(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// Match tells whether a job passes the filter, as far as its Info tells: not of its aliases, its path, its state
// nor its place in the list.
func (f *Filter) Match(i *Info) bool {
	if i.Parent != "" && !f.All || i.Status == "" || f.Name != "" && !MatchName(f.Name, i.Name) {
		return false
	}
	if len(f.Status) > 0 && !slices.Contains(f.Status, i.Status) || f.Blocked && !i.Blocked {
		return false
	}
	if f.Type != "" && i.Type != f.Type || f.Queue != "" && i.Queue != f.Queue {
		return false
	}
	if f.SequentialKey != "" && i.SequentialKey != f.SequentialKey || f.UniqueKey != "" && i.UniqueKey != f.UniqueKey {
		return false
	}
	for k, v := range f.Labels {
		if has, ok := i.Labels[k]; !ok || has != v {
			return false
		}
	}
	for _, k := range f.Keys {
		if _, ok := i.Labels[k]; !ok {
			return false
		}
	}
	for _, k := range f.Without {
		if _, ok := i.Labels[k]; ok {
			return false
		}
	}
	created := i.Created
	if i.Parent == "" {
		created = i.ID.Time()
	}
	return f.During(created)
}

// During tells whether a job created at that time is neither too old nor too new.
func (f *Filter) During(created time.Time) bool {
	return !created.Before(f.Since) && (f.Until.IsZero() || created.Before(f.Until))
}

// Details are what an Info does not say of a job.
type Details struct {
	Aliases  []string // sorted
	Children map[string]ID
	Failures []Failure // newest first, at most 20
}
