package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// plain are the stand-ins for what this program draws with.
var plain = map[rune]string{
	'●': "*", '✓': "+", '✗': "x", '◌': ".", '■': "#", '○': "o",
	'─': "-", '│': "|", '├': "|", '└': "`", '▾': "v", '▸': ">", '▌': ">", '█': "#",
	'←': "<", '→': ">", '↑': "^", '↓': "v", '…': "~", '·': "-", '░': ".",
	'╭': "+", '╮': "+", '╰': "+", '╯': "+", '┤': "|", '┬': "+", '┴': "+", '┼': "+", '◆': "*", '†': "+", '━': "=", '┃': "#", '┏': "#", '┓': "#", '┗': "#", '┛': "#", '▶': ">",
	'▁': "_", '▂': ".", '▃': "-", '▄': "=", '▅': "+", '▆': "*", '▇': "%", '▏': ".", '▎': ".", '▍': ".", '▋': "#", '▊': "#", '▉': "#",
}

// ASCII replaces all that is not ASCII by what takes as many columns: lines and symbols by
// those that resemble them, all else by question marks.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		stand, known := plain[r]
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case known:
			b.WriteString(stand)
		default:
			b.WriteString(strings.Repeat("?", ansi.StringWidth(string(r))))
		}
	}
	return b.String()
}
