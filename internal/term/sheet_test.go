package term_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/term"
)

// A sheet looks as what it is for, and keeps what is written.
func TestSheet(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	var out bytes.Buffer
	wish := term.Wish{Color: term.ColorAlways, ASCII: true, ISO: true}
	sheet := term.NewSheet(term.NewScreen(&out, &wish))
	if s := term.StyleOf(sheet); !s.Color || !s.ASCII || !s.ISO {
		t.Errorf("its style: %+v", s)
	}
	plain := term.Plain(sheet)
	if s := term.StyleOf(plain); !s.Color || !s.ASCII || !s.ISO {
		t.Errorf("the style of a plain one: %+v", s)
	}
	if _, err := fmt.Fprint(plain, "é…"); err != nil || sheet.String() != `\u00e9...` && sheet.Len() == 0 || out.Len() > 0 {
		t.Errorf("kept %q, written %q, %v", sheet.String(), out.String(), err)
	}
	if term.IsTerminal(sheet) {
		t.Error("it is no terminal")
	}
}
