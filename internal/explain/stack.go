package explain

import "github.com/weirworks/weir/job"

// Panicked is where a panic began, as its stack tells: " at /src/worker.go:12, in main.(*Resize).Run"; nothing without
// a stack.
func Panicked(stack string) string {
	f := job.Failure{Stack: stack}
	if at := f.PanickedAt(); at != "" {
		return " at " + at
	}
	return ""
}
