// Command sumflow adds numbers with two durable jobs: a parent makes a summing child,
// sends it the numbers and, on another port, the word that they are all there; it sleeps
// until the child has written the sum, and passes it on.
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
