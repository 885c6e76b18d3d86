//go:build !unix

package term

import "io"

// Gone tells whether nobody reads any more what is written to w, where that can be known.
func Gone(io.Writer) bool { return false }

// Closed tells whether w was closed when the program was started, where that can be known.
func Closed(io.Writer) bool { return false }
