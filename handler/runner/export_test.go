package runner

import "github.com/weirworks/weir/handler"

// Failing is why a payload with a result is tried again.
func Failing(r *handler.Result) error { return failing(codeOf(r), r) }

// RetryAfter is for how long an answer asks its client to wait.
var RetryAfter = retryAfter
