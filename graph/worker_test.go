package graph_test

import (
	"context"
	"errors"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Idling is a worker that does nothing, to be embedded in those that are never run.
type Idling struct{}

func (Idling) Run(context.Context, *worker.Run) error { return nil }

// The workers of the tests' graphs.
type (
	Image struct{ Name string }

	ListDir struct {
		Idling
		Dir   string
		Files port.Out[Image]
	}

	Resize struct {
		Idling
		In    port.In[Image] `port:"in,limit=100"`
		Width port.In[int]   `port:"width,default=640"`
		Thumb port.Out[Image]
	}

	Pack struct {
		Idling
		Images port.In[Image]
		Names  port.In[string]
		Zip    port.Out[[]byte]
	}

	// Idle has no ports and no fields.
	Idle struct{ Idling }

	// Ratio has an argument that JSON may not be able to carry.
	Ratio struct {
		Idling
		Of  float64
		Out port.Out[Image]
	}

	// Moaner has a port for errors that letters do not fit into.
	Moaner struct {
		Idling
		Errors port.Out[string]
	}

	// Loud has an argument that is never encoded.
	Loud struct {
		Idling
		Arg Arg
	}

	// Typed says its type itself.
	Typed struct{ Idle }

	// Broken has two fields that are not ports.
	Broken struct {
		Idling
		In  port.In[Image]  `port:"in,limt=3"`
		Out port.Out[Image] `port:"a b"`
	}
)

func (Typed) JobType() string { return "typed/v2" }

// Arg is an argument whose error has two lines.
type Arg struct{}

func (Arg) MarshalJSON() ([]byte, error) { return nil, errors.New("two\nlines") }
