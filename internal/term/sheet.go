package term

import (
	"bytes"
	"io"
)

// Sheet keeps what is written for a writer, so that it can be drawn as a whole. StyleOf and Plain know that writer.
type Sheet struct {
	bytes.Buffer
	of io.Writer
}

// NewSheet returns an empty Sheet for a writer.
func NewSheet(of io.Writer) *Sheet { return &Sheet{of: of} }

// origin is what is written to in the end, and what the user asks for.
func origin(w io.Writer) (io.Writer, Wish) {
	var wish Wish
	for {
		switch v := w.(type) {
		case *Screen:
			if w = v.out; *v.wish != (Wish{}) {
				wish = *v.wish
			}
		case *Sheet:
			w = v.of
		default:
			return w, wish
		}
	}
}
