package main

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// validUTF8 reads src to its end, piece by piece through buf, and tells whether all of
// it is UTF-8.
func validUTF8(ctx context.Context, src io.Reader, buf []byte) (bool, error) {
	fill := 0
	for {
		n, err := src.Read(buf[fill:])
		fill += n
		whole := fill - cutOff(buf[:fill])
		if !utf8.Valid(buf[:whole]) {
			return false, nil
		}
		fill = copy(buf, buf[whole:fill])
		if errors.Is(err, io.EOF) {
			return fill == 0, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
}

// cutOff returns how many bytes at the end of b may be the beginning of a rune.
func cutOff(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
