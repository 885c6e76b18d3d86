package redisstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// driverLog takes the log lines of go-redis, which writes them to standard error otherwise. They repeat what its calls return as errors.
type driverLog struct{}

// Printf passes a line on to the logger that the program has then.
func (driverLog) Printf(ctx context.Context, format string, v ...any) {
	if log := slog.Default(); log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, v...))
	}
}

// The logger of go-redis is one for all clients in the process. It is set before main begins and never again, so that a program that sets
// another one keeps it.
func init() { redis.SetLogger(driverLog{}) }
