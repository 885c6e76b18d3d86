package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Picture is a file to make thumbnails of.
type Picture struct {
	Number int    `json:"number"` // its place in the album, from 1
	File   string `json:"file"`   // without the folder
}

// kinds are the names of files that are pictures.
var kinds = []string{".gif", ".jpeg", ".jpg", ".png"}

// List finds the pictures of a folder, in the order of their names.
type List struct {
	Folder   string
	Pictures port.Out[Picture]
}

// JobType implements job.Typer.
func (*List) JobType() string { return "album/list" }

// Run lists all in one go: the names of a folder fit into a commit.
func (l *List) Run(context.Context, *worker.Run) error {
	entries, err := os.ReadDir(l.Folder)
	if err != nil {
		return err
	}
	number := 0
	for _, e := range entries { // sorted by name
		if !e.Type().IsRegular() || !slices.Contains(kinds, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		number++
		if err := l.Pictures.Write(Picture{number, e.Name()}); err != nil {
			return fmt.Errorf("listing %s: %w", l.Folder, err)
		}
	}
	return nil
}
