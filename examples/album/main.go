// Command album makes thumbnails of the pictures of a folder, and an index of them. The
// graph of durable jobs grows with its work: for each picture, make spawns a graph of its
// own, whose jobs resize in parallel and are joined.
//
//	list -> make -> index
//	         ├─ 000001: resize to 160, resize to 640, … -> entry
//	         └─ 000002: …
//
// A picture that cannot be read becomes a letter to its own join, and stops no other. With --redis and --tree an album
// that was interrupted goes on where it stopped.
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
