package top

import "testing"

// A box may begin and end in the middle of wide characters.
func TestBoxOverWideCharacters(t *testing.T) {
	t.Parallel()
	const under = "归档归档归档-"
	m := &Model{width: columnsOf(under)}
	for x := range m.width - 3 {
		lines := []string{under}
		m.lay(lines, []string{"│x│"}, x, 0)
		if n := columnsOf(lines[0]); n != m.width {
			t.Errorf("at %d: %q has %d columns", x, lines[0], n)
		}
	}
}
