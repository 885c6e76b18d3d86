package suite

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Print writes the medians and the ratios as tables.
func (r *Results) Print(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "\n%s, %d cores, %s, %s, %s, Redis %s; load average at the start %s\n\n", m.CPU, m.Cores, m.Memory, m.OS, m.Go, m.Redis, m.Load)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIGURE\tSYSTEM\tMEDIAN\tUNIT\tLOWEST\tHIGHEST\tWEIR IS BETTER")
	last := ""
	for _, x := range r.sorted() {
		name := x.Name
		if name == last {
			name = ""
		}
		last = x.Name
		ratio := ""
		if v, ok := r.Ratios[key(x.Name, x.System)]; ok {
			ratio = round(v) + " x"
		} else if v, ok := r.Ratios[key(x.Name, theFirst)]; ok {
			ratio = round(v) + " x of the first"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, x.System, round(x.Value), x.Unit,
			round(slices.Min(x.samples)), round(slices.Max(x.samples)), ratio)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, system := range slices.Sorted(maps.Keys(r.Absent)) {
		fmt.Fprintf(w, "\nAbsent: %s: %s\n", system, r.Absent[system])
	}
	return nil
}

// sorted has the figures of a name together, in the order in which names came first.
func (r *Results) sorted() []Result {
	var names []string
	for _, x := range r.Results {
		if !slices.Contains(names, x.Name) {
			names = append(names, x.Name)
		}
	}
	return slices.SortedStableFunc(slices.Values(r.Results), func(a, b Result) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
}
