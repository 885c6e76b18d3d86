// Command fibonacci computes a Fibonacci number the slow way, with a tree of durable
// jobs: the job for n has one child for n-1 and one for n-2, sleeps until both are
// completed, and adds what they wrote.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
