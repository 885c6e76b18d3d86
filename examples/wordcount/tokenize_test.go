package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// naiveWords is what a word is, said as plainly as possible.
func naiveWords(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		words[i] = strings.Map(unicode.ToLower, w)
	}
	return words
}

// tokens cuts the text into pieces of the given size and returns the words found.
func tokens(text []byte, piece int) []string {
	var words []string
	t := tokenizer{emit: func(word []byte) { words = append(words, string(word)) }}
	var rest []byte
	for some := range slices.Chunk(text, piece) {
		rest = append(rest, some...)
		used, _ := t.write(rest)
		rest = rest[used:]
	}
	t.end()
	return words
}

func TestTokenizer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		" \n\t.,":                   "",
		"Hello, hello":              "hello hello",
		"don't x-ray a_b":           "don t x ray a b",
		"3.14 1e9 0xFF":             "3 14 1e9 0xff",
		"ÄÖÜ Straße ÉCOLE":          "äöü straße école",
		"ΣΊΣΥΦΟΣ":                   "σίσυφοσ",
		"Привет, МИР":               "привет мир",
		"日本語、テスト":                   "日本語 テスト",
		"١٢٣ ４２":                    "١٢٣ ４２",
		"\u0130stanbul \u212Aelvin": "istanbul kelvin",
		"ⅷ ½ x²":                    "x",
		"e\u0301t\u0301":            "e t",
		"\uFEFFbom \uFFFD mark":     "bom mark",
		"a\x00b\u2028c\u00A0d":      "a b c d",
		"𝒜𝔅 𐐀":                      "𝒜𝔅 𐐨",
		"trailing":                  "trailing",
		"emoji👍between 👨‍👩‍👧 words": "emoji between words",
	} {
		for _, piece := range []int{1, 2, 3, 7, 1000} {
			if got := strings.Join(tokens([]byte(text), piece), " "); got != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", text, piece, got, want)
			}
		}
		if naive := strings.Join(naiveWords(text), " "); naive != want {
			t.Errorf("%q: the naive way gives %q, want %q", text, naive, want)
		}
	}
}

// The end that write returns is where counting can start again without losing a word or
// counting one twice.
func TestTokenizerEnd(t *testing.T) {
	t.Parallel()
	text := []byte("One two,  drei ÄÖÜ vier")
	for cut := range len(text) {
		var words []string
		first := tokenizer{emit: func(word []byte) { words = append(words, string(word)) }}
		_, end := first.write(text[:cut])
		words = append(words, tokens(text[max(end, 0):], 5)...)
		if got, want := strings.Join(words, " "), "one two drei äöü vier"; got != want {
			t.Errorf("cut at %d, again from %d: got %q, want %q", cut, end, got, want)
		}
	}
}

func TestTokenizerLongWord(t *testing.T) {
	t.Parallel()
	for _, size := range []int{maxWord - 1, maxWord, maxWord + 1, 3*maxWord + 17} {
		lower := strings.Repeat("äbc", size/4+1)[:size-size%4]
		lower += strings.Repeat("z", size-len(lower))
		want := lower
		if size > maxWord {
			sum := sha256.Sum256([]byte(lower))
			want = lower[:wordHead] + "…sha256:" + hex.EncodeToString(sum[:])
		}
		for _, piece := range []int{1000, 1 << 16, pieceSize, 10 * maxWord} {
			got := tokens([]byte("x "+strings.ToUpper(lower)+" y"), piece)
			if len(got) != 3 || got[0] != "x" || got[1] != want || got[2] != "y" {
				t.Errorf("word of %d bytes in pieces of %d: got %.80q", size, piece, got)
			}
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	f.Add([]byte("Hello wörld 123"), 3)
	f.Add([]byte("\xff\xc3"), 1)
	f.Add([]byte("a\xe2\x82b"), 2)
	f.Add([]byte("İK日本"), 1)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		got := tokens(text, max(1, piece%64))
		if want := naiveWords(string(text)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func FuzzValidUTF8(f *testing.F) {
	f.Add([]byte("wörld日本𝒜"), 4)
	f.Add([]byte("a\xe2\x82"), 5)
	f.Add([]byte("\xf0\x9f\x91"), 4)
	f.Fuzz(func(t *testing.T, text []byte, buf int) {
		got, err := validUTF8(t.Context(), bytes.NewReader(text), make([]byte, 4+max(0, buf%16)))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(string(text), "") == string(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
