package job

import (
	"context"
	"strings"

	"github.com/weirworks/weir/port"
)

type contextKey struct{}

// WithContext returns a context under which all messages written from outside of runs
// carry the given keys. Keys of nested contexts are merged.
func WithContext(ctx context.Context, keys port.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, ContextOf(ctx).With(keys))
}

// Actor is who acts under a context, as port.ContextBy of WithContext says; empty if that names nobody. What is done to a job by
// somebody who is named is in its log. Of a name of more than 128 bytes it is the beginning.
func Actor(ctx context.Context) string {
	by, _ := ContextOf(ctx)[port.ContextBy].(string)
	if len(by) > maxActor {
		by = strings.ToValidUTF8(by[:maxActor], "") + "…"
	}
	return by
}

// maxActor is how many bytes of a name Actor returns.
const maxActor = 128

// ContextOf returns the keys that WithContext added.
func ContextOf(ctx context.Context) port.Context {
	c, _ := ctx.Value(contextKey{}).(port.Context)
	return c
}
