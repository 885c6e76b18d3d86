package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// CanAsk tells whether somebody at a terminal answers what is read from r.
func CanAsk(r io.Reader) bool {
	f, isFile := r.(*os.File)
	return isFile && xterm.IsTerminal(int(f.Fd()))
}
