package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DeadLettersError tells with which dead letters something could not be done, and why. Its text says equal reasons once.
type DeadLettersError struct {
	Doing  string // requeuing, changing or discarding
	All    int    // how many it was to be done with
	Failed []*DeadLetterError
}

// DeadLetterError tells why something could not be done with a dead letter.
type DeadLetterError struct {
	Letter string  // its ID
	In     PortRef // where it lies
	Err    error
}

// toldReasons is how many reasons the text of a DeadLettersError tells.
const toldReasons = 3

// doneTo is what dead letters are after what was done.
var doneTo = map[string]string{"requeuing": "requeued", "changing": "changed", "discarding": "discarded"}

// Error implements error.
func (e *DeadLetterError) Error() string {
	return fmt.Sprintf("dead letter %s of job %s: %v", e.Letter, e.In.Job, e.Err)
}

// Unwrap returns why.
func (e *DeadLetterError) Unwrap() error { return e.Err }

// Error implements error.
func (e *DeadLettersError) Error() string {
	if len(e.Failed) == 1 {
		return e.Doing + " " + e.Failed[0].Error()
	}
	counts := map[string]int{}
	var reasons []string
	for _, f := range e.Failed {
		text := f.Err.Error()
		if counts[text]++; counts[text] == 1 {
			reasons = append(reasons, text)
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	text := fmt.Sprintf("%d of %d dead letters were not %s: ", len(e.Failed), e.All, doneTo[e.Doing])
	if len(reasons) == 1 {
		return text + reasons[0]
	}
	told := reasons[:min(len(reasons), toldReasons)]
	rest := len(e.Failed)
	for i, reason := range told {
		rest -= counts[reason]
		told[i] = fmt.Sprintf("%s (%d)", reason, counts[reason])
	}
	if rest > 0 {
		told = append(told, fmt.Sprintf("and %d more", rest))
	}
	return text + strings.Join(told, "; ")
}

// Unwrap returns what it tells of each.
func (e *DeadLettersError) Unwrap() []error {
	all := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		all[i] = f
	}
	return all
}
