// Command gendoc writes the page on the life of a job to the file it is given.
package main

import (
	"fmt"
	"os"

	"github.com/weirworks/weir/statemachine"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(statemachine.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}
