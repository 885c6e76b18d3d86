// Package api is what programs other than Go's see of Weir: jobs, logs and errors as JSON,
// and the HTTP handler that serves them.
package api
