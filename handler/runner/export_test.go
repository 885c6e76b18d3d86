package runner

import "github.com/weirworks/weir/handler"

// Failing is why a payload with a result is tried again.
func Failing(r *handler.Result) error { return failing(codeOf(r), r) }
