package job

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxProgressText is how many bytes the text of a Progress may have.
const MaxProgressText = 200

// Progress is how far a job says that it is, see worker.Run.Progress. The zero value says nothing.
type Progress struct {
	Done  int    `json:"done"`            // of Total, in whatever the job counts
	Total int    `json:"total,omitempty"` // 0: not known
	Text  string `json:"text,omitempty"`  // what it is at, in a few words
}

// Validate tells what is wrong with it.
func (p Progress) Validate() error {
	switch {
	case p.Done < 0 || p.Total < 0:
		return fmt.Errorf("%w: progress %d of %d: use numbers from 0 on, and a total of 0 if it is not known", ErrName, p.Done, p.Total)
	case len(p.Text) > MaxProgressText:
		return fmt.Errorf("%w: the text of a progress has %d bytes, at most %d are allowed", ErrTooLarge, len(p.Text), MaxProgressText)
	case !utf8.ValidString(p.Text) || strings.ContainsFunc(p.Text, unicode.IsControl):
		return fmt.Errorf("%w: the text of a progress is %.40q: use valid UTF-8 of one line, without control characters", ErrName, p.Text)
	}
	return nil
}

// String is it in one line: 3/5 and the text, or 3 and the text while the total is not known.
func (p Progress) String() string {
	var s string
	switch {
	case p.Total > 0:
		s = fmt.Sprintf("%d/%d", p.Done, p.Total)
	case p.Done > 0:
		s = strconv.Itoa(p.Done)
	}
	if s != "" && p.Text != "" {
		s += " "
	}
	return s + p.Text
}
