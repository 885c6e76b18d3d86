package top_test

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// bigTree has that many jobs: groups of a hundred, of which each second is running.
func bigTree(n int) []*job.Info {
	tree := []*job.Info{{ID: album, Type: "big", Graph: true, Status: statemachine.Suspended, Created: noon}}
	statuses := []statemachine.Status{statemachine.Running, statemachine.Suspended, statemachine.Queued, statemachine.Failed}
	group := album
	for k := 1; k < n; k++ {
		i := &job.Info{ID: album.Nth(k), Name: fmt.Sprintf("job%d", k), Type: "Step", Parent: group, Status: statemachine.Completed, Created: noon, Ports: []job.PortInfo{in("in", 1, 2, 0), out("out", 2, to(k+1, port.Input, "in"))}}
		if k%2 == 0 {
			i.Status = statuses[k/2%len(statuses)]
		}
		if k%100 == 1 {
			i.Parent, i.Graph, i.Status = album, true, statemachine.Suspended
			group = i.ID
		}
		tree = append(tree, i)
	}
	return tree
}

// BenchmarkFrame is what Update and View cost together: for a key that moves, for a new
// picture of the whole tree, whose reading is not measured, and for a letter of a filter.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		s := newScreen(b, 200, 60, func(c *top.Config) { c.Interval = time.Nanosecond }, colors)
		s.store.jobs = bigTree(n)
		s.wait(time.Second)
		s.shows("49 completed")
		bench := func(name string, prepare func(k int) tea.Msg) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for k := 0; b.Loop(); k++ {
					b.StopTimer()
					msg := prepare(k)
					b.StartTimer()
					_, cmd := s.model.Update(msg)
					_ = s.frame()
					b.StopTimer()
					s.do(cmd)
					b.StartTimer()
				}
			})
		}
		keys := []rune{tea.KeyDown, tea.KeyUp, tea.KeyPgDown, tea.KeyEnd, tea.KeyHome}
		bench("key", func(k int) tea.Msg { return tea.KeyPressMsg{Code: keys[k%len(keys)]} })
		bench("picture", func(int) tea.Msg {
			s.now = s.now.Add(time.Second)
			_, cmd := s.model.Update(s.tick(s.now))
			return cmd()
		})
		s.press("/")
		letters := []tea.KeyPressMsg{{Code: '7', Text: "7"}, {Code: '9', Text: "9"}, {Code: tea.KeyBackspace}, {Code: tea.KeyBackspace}}
		bench("filter", func(k int) tea.Msg { return letters[k%len(letters)] })
	}
}
