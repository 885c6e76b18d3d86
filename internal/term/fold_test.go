package term_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Of many children those that are not finished are shown before those that are.
func TestFoldShowsUnfinishedFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		completed, suspended, failed int
		shown                        map[string]int
		rest                         string
	}{
		{3, 7, 0, map[string]int{"completed": 3, "suspended": 7}, ""},
		{4, 6, 1, map[string]int{"completed": 4, "suspended": 6, "failed": 1}, ""},
		{4, 13, 0, map[string]int{"suspended": 13}, "4 completed"},
		{4, 15, 0, map[string]int{"suspended": 14}, "1 suspended, 4 completed"},
		{3, 12, 12, map[string]int{"failed": 12, "suspended": 11}, "1 suspended, 3 completed"},
		{30, 12, 0, map[string]int{"suspended": 10}, "2 suspended, 30 completed"},
	} {
		tree := []*job.Info{{ID: "t", Type: "g", Graph: true, Status: statemachine.Suspended}}
		for status, n := range map[statemachine.Status]int{statemachine.Completed: c.completed, statemachine.Suspended: c.suspended, statemachine.Failed: c.failed} {
			for i := range n {
				tree = append(tree, &job.Info{ID: job.ID(fmt.Sprint("t.", len(tree))), Parent: "t", Name: fmt.Sprint(status, i), Status: status})
			}
		}
		var b strings.Builder
		if err := term.DrawTree(&b, tree, term.Style{}, term.TreeOptions{Same: 10}); err != nil {
			t.Fatal(err)
		}
		for _, status := range []string{"completed", "suspended", "failed"} {
			if n := strings.Count(b.String(), "─ "+status); n != c.shown[status] {
				t.Errorf("%+v: %d %s:\n%s", c, n, status, b.String())
			}
		}
		if _, rest, _ := strings.Cut(b.String(), "… "); strings.TrimSpace(rest) != c.rest {
			t.Errorf("%+v: hidden are %q", c, rest)
		}
	}
}

// Of many children those that are locked are shown, too.
func TestFoldShowsLocked(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{{ID: "t", Type: "g", Graph: true, Status: statemachine.Suspended}}
	for i := range 40 {
		tree = append(tree, &job.Info{ID: job.ID(fmt.Sprint("t.", i)), Parent: "t", Name: fmt.Sprint("n", i), Status: statemachine.Suspended})
	}
	locks := map[job.ID]job.LockInfo{"t.30": {By: "ann"}, "t.39": {By: "bob"}}
	var b strings.Builder
	if err := term.DrawTree(&b, tree, term.Style{}, term.TreeOptions{Same: 10, Locks: locks}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n30", "by ann", "n39", "by bob", "n9 ", "… 28 suspended"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "n10 ") {
		t.Errorf("more than ten are shown that are not locked:\n%s", b.String())
	}
}
