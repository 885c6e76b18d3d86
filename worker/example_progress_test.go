package worker_test

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Scan reads the files of a folder, and tells how far it is.
type Scan struct {
	Files []string
	Found port.Out[string]
}

func (s *Scan) Run(_ context.Context, run *worker.Run) error {
	for n, file := range s.Files {
		if err := run.Progress(n, len(s.Files), "reading "+file); err != nil {
			return err
		}
		if err := s.Found.Write(file); err != nil {
			return err
		}
	}
	return run.Progress(len(s.Files), len(s.Files), "files")
}

// A job tells how far it is, for weir tree, weir top and the page. While a run goes on that is seen at most a second later.
func ExampleRun_Progress() {
	ctx, client, stop := onEmbedded(&Scan{})
	defer stop()

	scan, err := client.Start(ctx, job.Single(&Scan{Files: []string{"a.txt", "b.txt"}}, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := scan.Wait(ctx)
	fmt.Println(info.Status, info.Progress, err)
	// Output: completed 2/2 files <nil>
}
