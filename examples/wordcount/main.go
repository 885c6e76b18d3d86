// Command wordcount counts the words of files and directories through a graph of
// durable jobs:
//
//	list -> split (k jobs) -> count (k jobs) -> merge
//
// With --redis and --tree a count that was killed goes on where it stopped when it is
// started again, and every word is counted once.
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
