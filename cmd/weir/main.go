// Command weir runs graphs of jobs from files, and looks at them.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// So that writing to a closed pipe is an error rather than the end. Not ignored: programs
	// that jobs run would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, signals := catch()
	os.Exit(signals.code(run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}
