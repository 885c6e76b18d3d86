package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed starter
var starter embed.FS

func newInit() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first graph, with data for it, and say how to run it",
		Long: `Write a first graph, words.yaml, and data for it, words.txt, into a directory, which is made
if it is not there (default the current one), and say how to run it. It needs no Redis. Files
that are there already are not touched: then nothing is written.`,
		Example: "  weir init\n  weir init first",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if ext := filepath.Ext(dir); ext == ".yaml" || ext == ".yml" || ext == ".json" {
				return usageError{fmt.Errorf("%s looks like a file, but weir init writes two files into a directory: name that, as in weir init first", dir)}
			}
			names, err := writeStarter(dir)
			if err != nil {
				return err
			}
			first := ""
			if dir != "." {
				first = "  cd " + shellWord(dir) + "\n"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s\n\nTry:\n%s  weir run words.yaml --in lines=@words.txt --text\n  weir graph draw words.yaml\n  weir components        # what more a graph can be made of\n  weir demo              # a larger one, live\n", strings.Join(names, " and "), first)
			return err
		},
	}
}

// writeStarter writes the files, unless one of them is there.
func writeStarter(dir string) (names []string, err error) {
	files, err := starter.ReadDir("starter")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		if _, err := os.Lstat(name); err == nil {
			return nil, usageError{fmt.Errorf("%s is there already: name another directory, as in weir init first", name)}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, usageError{err}
		}
		names = append(names, name)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, usageError{err}
	}
	for n, f := range files {
		text, err := starter.ReadFile("starter/" + f.Name())
		if err != nil {
			return nil, err
		}
		if err := writeNew(names[n], text); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// writeNew writes a file that is not there yet.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640) //nolint:gosec // of the command line
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
