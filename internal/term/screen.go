package term

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrClosed is what writing to a Screen returns when nobody reads its output any more, as
// after "| head": no failure, but the end of the work.
var ErrClosed = errors.New("nobody reads the output any more")

// Screen is the output of a program together with what its user asks for.
type Screen struct {
	out   io.Writer
	wish  *Wish
	plain bool
}

// NewScreen returns a writer that StyleOf knows the wish of. The wish may change until then.
func NewScreen(w io.Writer, wish *Wish) *Screen { return &Screen{out: w, wish: wish} }

// File returns the file that is written to, or nil.
func File(w io.Writer) *os.File {
	if s, ok := w.(*Screen); ok {
		w = s.out
	}
	f, _ := w.(*os.File)
	return f
}

// Plain returns a writer for what people read: without Unicode, what is written to it
// becomes ASCII. Each Write must be of whole characters.
func Plain(w io.Writer) io.Writer {
	if !StyleOf(w).ASCII {
		return w
	}
	if s, ok := w.(*Screen); ok {
		return &Screen{out: s.out, wish: s.wish, plain: true}
	}
	return &Screen{out: w, wish: &Wish{}, plain: true}
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (n int, err error) {
	if s.plain {
		if _, err = io.WriteString(s.out, toASCII(string(p))); err == nil {
			n = len(p)
		}
	} else {
		n, err = s.out.Write(p)
	}
	if errors.Is(err, syscall.EPIPE) {
		err = ErrClosed
	}
	return n, err
}
