package main

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A word longer than maxWord bytes is counted under its beginning and its hash, so
// that a file which is one endless word needs no endless memory.
const (
	maxWord  = 256 << 10
	wordHead = 32
)

// lowerASCII maps ASCII letters and digits to lower case, and all other bytes to 0.
var lowerASCII = func() (table [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		if r := rune(c); unicode.IsLetter(r) || unicode.IsDigit(r) {
			table[c] = byte(unicode.ToLower(r))
		}
	}
	return table
}()

// tokenizer finds the words of a text that comes in pieces: the longest runs of
// letters and digits, in lower case. emit gets each word in a buffer that is used again.
type tokenizer struct {
	emit func(word []byte)
	word []byte    // the word that has begun
	head string    // the beginning of a word longer than maxWord, else empty
	rest hash.Hash // of such a word without what is in word
}

// write takes the next piece. It uses all of it but a rune that is cut off at the end,
// which is to be the beginning of the next piece. end is where in the piece the last
// complete word ended, or -1.
func (t *tokenizer) write(piece []byte) (used, end int) {
	i, end, word := 0, -1, t.word
	for i < len(piece) {
		c := piece[i]
		if lower := lowerASCII[c]; lower != 0 {
			word = append(word, lower)
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			if !utf8.FullRune(piece[i:]) {
				break
			}
			var r rune
			r, size = utf8.DecodeRune(piece[i:])
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				word = utf8.AppendRune(word, unicode.ToLower(r))
				i += size
				continue
			}
		}
		if len(word) > 0 || t.head != "" {
			t.word = word
			t.end()
			word, end = t.word, i
		}
		i += size
	}
	t.word = word
	t.spill()
	return i, end
}

// end emits the word that has begun, if there is one.
func (t *tokenizer) end() {
	t.spill()
	switch {
	case t.head != "":
		t.rest.Write(t.word)
		t.emit([]byte(t.head + "…sha256:" + hex.EncodeToString(t.rest.Sum(nil))))
		t.head = ""
	case len(t.word) > 0:
		t.emit(t.word)
	}
	t.word = t.word[:0]
}

// spill moves what is known of a word into its hash when it gets too long.
func (t *tokenizer) spill() {
	if len(t.word) <= maxWord {
		return
	}
	if t.head == "" {
		t.rest = sha256.New()
		t.head = strings.ToValidUTF8(string(t.word[:wordHead]), "")
	}
	t.rest.Write(t.word)
	t.word = t.word[:0]
}
