package top

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

// Run shows the view on a terminal until the user quits, ctx ends or the terminal goes away.
// The terminal is as before when it returns.
func Run(ctx context.Context, cfg Config, in, out *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	gone := make(chan struct{})
	keys := &input{File: in, gone: sync.OnceFunc(func() { close(gone) })}
	p := tea.NewProgram(New(cfg), tea.WithInput(keys), tea.WithOutput(out), tea.WithoutSignalHandler())
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
		case <-ended:
		}
		p.Quit()
	}()
	_, err := p.Run()
	if errors.Is(err, syscall.EIO) {
		return nil // the terminal went away: nobody is there to be told
	}
	return err
}

// input is a terminal to read from that tells when it is gone.
type input struct {
	*os.File
	gone func()
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.File.Read(p)
	if errors.Is(err, io.EOF) {
		i.gone()
	}
	return n, err
}
