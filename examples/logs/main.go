// Command logs analyses web-server access logs through a graph of durable jobs:
//
//	read -> parse (k jobs) -> status, paths, hours, clients -> report
//	                       -> rejected ---------------------^
//
// Limits on the wires keep a file of any size from filling Redis. With --redis and --tree
// an analysis that was killed goes on where it stopped when it is started again, and every
// line is counted once.
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
