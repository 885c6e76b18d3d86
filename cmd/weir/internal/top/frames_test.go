package top_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"pgregory.net/rapid"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/golden"
)

// TestFrames compares what is on the screen with testdata.
func TestFrames(t *testing.T) {
	t.Parallel()
	resize := []string{"down", "down"}
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
		change        func(*top.Config)
	}{
		{"tree_80x24", 80, 24, nil, nil},
		{"tree_120x40", 120, 40, resize, nil},
		{"tree_80x24_color", 80, 24, resize, colors},
		{"tree_120x40_color", 120, 40, nil, colors},
		{"tree_200x60", 200, 60, resize, nil},
		{"tree_50x30", 50, 30, resize, nil},
		{"tree_80x24_ascii", 80, 24, resize, ascii},
		{"list_80x24", 80, 24, nil, list},
		{"list_120x40", 120, 40, []string{"down"}, list},
		{"ports", 80, 24, []string{"down", "down", "tab"}, nil},
		{"edges", 80, 24, []string{"down", "down", "tab", "tab"}, nil},
		{"state", 80, 24, []string{"tab", "tab", "tab"}, nil},
		{"log", 80, 24, []string{"shift+tab"}, nil},
		{"why", 100, 30, resize, nil},
		{"choose", 80, 24, []string{"f", "p", "down"}, nil},
		{"peek", 80, 24, []string{"f", "p", "enter"}, nil},
		{"send", 80, 24, []string{"f", "s", "enter", `{"a": "`, "enter"}, nil},
		{"terminate", 80, 24, []string{"f", "x"}, nil},
		{"find", 80, 24, []string{"/re"}, colors},
		{"found", 80, 24, []string{"/page", "enter", "down"}, nil},
		{"folded", 80, 24, []string{"end"}, nil},
		{"unfolded", 80, 24, []string{"end", "enter"}, nil},
		{"tree_60x20", 60, 20, resize, nil},
		{"list_60x20", 60, 20, nil, list},
		{"list_200x60", 200, 60, []string{"down"}, func(c *top.Config) { list(c); colors(c) }},
		{"list_failed", 100, 30, []string{":filter failed", "enter"}, list},
		{"selected", 100, 30, []string{"down", "down", "space", "space"}, colors},
		{"retry_several", 100, 30, []string{"a", "r"}, nil},
		{"log_full", 100, 30, []string{"f", "L"}, nil},
		{"graph_60x20", 60, 20, []string{"2"}, nil},
		{"graph_100x30", 100, 30, []string{"2"}, nil},
		{"graph_200x60", 200, 60, []string{"2", "right", "right"}, nil},
		{"graph_200x60_color", 200, 60, []string{"2"}, colors},
		{"graph_100x30_ascii", 100, 30, []string{"2"}, ascii},
		{"graph_folded", 120, 40, []string{"2", ":tree", "enter", "down", "2", "enter"}, nil},
		{"queues_60x20", 60, 20, []string{"3"}, nil},
		{"queues_100x30", 100, 30, []string{"3", "down", "down"}, nil},
		{"queues_200x60", 200, 60, []string{"3", "o", "o"}, colors},
		{"queues_ascii", 100, 30, []string{"3"}, ascii},
		{"queue_pause", 100, 30, []string{"3", "p"}, nil},
		{"queue_limit", 80, 24, []string{"3", "=", "5"}, nil},
		{"workers_60x20", 60, 20, []string{"4"}, nil},
		{"workers_100x30", 100, 30, []string{"4", "down"}, nil},
		{"workers_200x60", 200, 60, []string{"4"}, colors},
		{"triggers_60x20", 60, 20, []string{"5"}, nil},
		{"triggers_100x30", 100, 30, []string{"5", "end"}, nil},
		{"triggers_200x60", 200, 60, []string{"5", "end"}, colors},
		{"trigger_fire", 100, 30, []string{"5", "F"}, nil},
		{"commands", 80, 24, []string{":"}, nil},
		{"command_words", 80, 24, []string{":pause ", "tab"}, nil},
		{"command_unknown", 80, 24, []string{":qeues", "enter"}, nil},
		{"help_200x60", 200, 60, []string{"?"}, nil},
		{"help_80x24", 80, 24, []string{"?"}, nil},
		{"help_40x12", 40, 12, []string{"?"}, nil},
	} {
		change := c.change
		if change == nil {
			change = func(*top.Config) {}
		}
		s := newScreen(t, c.width, c.height, change)
		s.press(c.keys...)
		s.fits(c.width, c.height)
		golden.Check(t, filepath.Join("testdata", c.name+".txt"), s.frame()+"\n")
	}
}

// fits fails the test if the frame has not exactly the size of the screen.
func (s *screen) fits(width, height int) {
	s.t.Helper()
	lines := strings.Split(s.frame(), "\n")
	if len(lines) != height {
		s.t.Errorf("%d lines on a screen of %d:\n%s", len(lines), height, s.frame())
	}
	for n, line := range lines {
		if w := lipgloss.Width(line); w != width {
			s.t.Errorf("line %d of %d x %d takes %d columns: %q", n, width, height, w, line)
		}
	}
	if c := s.model.View().Cursor; c != nil && (c.X < 0 || c.X >= width || c.Y < 0 || c.Y >= height) {
		s.t.Errorf("the cursor is at %d, %d on a screen of %d x %d", c.X, c.Y, width, height)
	}
}

// TestNarrowHeader: a title that is cut leaves no room for anything behind it.
func TestNarrowHeader(t *testing.T) {
	t.Parallel()
	for width := 30; width < 60; width++ {
		s := newScreen(t, width, 8, func(c *top.Config) { c.Job = "" })
		s.press("down")
		s.press("down")
		s.press("right")
		s.fits(width, 8)
	}
}

// TestAnyKeys: whatever is pressed on a screen of whatever size, while jobs come and go and
// Redis too, there is a whole frame.
func TestAnyKeys(t *testing.T) {
	t.Parallel()
	keys := []string{
		"up", "down", "left", "right", "enter", "esc", "tab", "pgup", "pgdown", "home", "end", "backspace", "delete", "space",
		"/", "s", "p", "x", "r", "R", "f", "J", "K", "y", "n", "?", ":", "z", "L", "F", "o", "d", "=", "<", ">", "1", "2", "4", "5", "3", "a", "相", "{", "}", "\"", "ctrl+w", "ctrl+u", "ctrl+l",
	}
	rapid.Check(t, func(r *rapid.T) {
		width, height := rapid.IntRange(30, 140).Draw(r, "width"), rapid.IntRange(8, 60).Draw(r, "height")
		s := newScreen(r, width, height, func(c *top.Config) {
			if rapid.Bool().Draw(r, "list") {
				c.Job = ""
			}
			c.Style.Color = rapid.Bool().Draw(r, "color")
		})
		all := s.store.jobs
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				s.store.err = nil
				if rapid.Bool().Draw(r, "away") {
					s.store.err = errAway
				}
			case 1:
				s.store.jobs = all[:rapid.IntRange(1, len(all)).Draw(r, "jobs")]
			case 2:
				x, y := rapid.IntRange(0, width-1).Draw(r, "x"), rapid.IntRange(0, height-1).Draw(r, "y")
				if rapid.Bool().Draw(r, "click") {
					s.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
				} else {
					s.send(tea.MouseWheelMsg{X: x, Y: y, Button: rapid.SampledFrom([]tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown, tea.MouseWheelLeft, tea.MouseWheelRight}).Draw(r, "wheel")})
				}
			case 3:
				s.wait(time.Duration(rapid.IntRange(1, 3).Draw(r, "seconds")) * time.Second)
			default:
				s.press(rapid.SampledFrom(keys).Draw(r, "key"))
			}
			s.fits(width, height)
		}
	})
}
