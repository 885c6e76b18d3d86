// Command approval has people approve what others want to spend. Each request is a durable
// job that sleeps until somebody decides, for weeks if need be and whatever becomes of the
// processes that serve it; it reminds people, and expires.
//
//	approval request --by Ada 900 a chair
//	approval decide 1 yes --as Grace
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // the Redis library prints what it also returns as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
