// Package draw draws graphs of jobs with named ports: on a terminal, as SVG, and as the
// texts that Mermaid and Graphviz draw.
//
// A [Picture] says what to draw, be it a definition or running jobs. [Terminal] and [SVG]
// share one layout, in layers from left to right: In ports are on the left of a box, Out
// ports on the right, and wires run between them at right angles.
//
//   - Wires of one Out port part at a junction, and wires that have nothing but their end
//     in common merge in front of it. Where they merge, each has an arrow that tells which
//     way it goes. Wires that cross are not connected: the horizontal one is drawn with a
//     gap, and junctions without.
//   - An In port has a row for the wires that merge, and one for each wire whose Out port
//     feeds others too, so that it can always be told what feeds what.
//   - A nested graph is a frame around its jobs, with its ports on it.
//   - The number on a wire is what waits in front of its end.
//
// The same picture is always drawn the same way. Nothing here keeps state: all functions
// may be called concurrently.
package draw

import (
	"fmt"
	"io"

	"github.com/weirworks/weir/statemachine"
)

// Picture is a graph to draw.
type Picture struct {
	Title string
	Nodes []Node
	Edges []Edge
}

// Kind says what a node is.
type Kind int

// The kinds of nodes.
const (
	Job    Kind = iota // a box
	Group              // a nested graph: a frame around the nodes whose Group it is; without any, a box
	Input              // an input of the drawn graph, on its left; edges begin at its one Out port
	Output             // an output of the drawn graph, on its right; edges end at its one In port
)

// Node is a job, a nested graph, or an input or output of the graph that is drawn.
type Node struct {
	ID      string // unique in the picture, such as "album/resize"
	Kind    Kind
	Label   string // what it is called; empty means ID
	Type    string // of its worker
	Note    string // something short, such as "×4" or "waits: out full"
	Status  statemachine.Status
	In, Out []Port // an Input or Output without any has one called Label
	Group   string // ID of the Group around it, empty for the top level
}

// Port is a port of a node. Its name is unique among those of its node in its direction.
type Port struct {
	Name     string
	Constant string // the value that an In port begins with, if it has one
	Waiting  int    // messages in an Out port that leads nowhere
	Closed   bool   // nothing will pass any more
}

// Edge is a wire from an Out port to an In port. Inside a Group, edges begin at its In
// ports and end at its Out ports.
//
// For an Input or Output the name of the port may be left out.
type Edge struct {
	From, FromPort string
	To, ToPort     string
	// Size is the number of messages that wait in the port at the end; below zero it is
	// unknown. Edges that are drawn as one show it once, or each if they differ.
	Size int
	// Limit is how many may wait; zero or less means no limit, or none that is known.
	Limit    int
	Feedback bool // leads back, if there is a circle to close
	Closed   bool // nothing will pass any more
}

// Options are for [Write]. The zero value is fine.
type Options struct {
	Terminal TerminalOptions
}

// formats has what Write knows, in the order of Formats.
var formats = []struct {
	name string
	draw func(io.Writer, Picture, Options) error
}{
	{"terminal", func(w io.Writer, p Picture, o Options) error { return Terminal(w, p, o.Terminal) }},
	{"svg", func(w io.Writer, p Picture, _ Options) error { return SVG(w, p) }},
	{"mermaid", func(w io.Writer, p Picture, _ Options) error { return Mermaid(w, p) }},
	{"dot", func(w io.Writer, p Picture, _ Options) error { return DOT(w, p) }},
}

// Formats lists the formats that [Write] knows.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Write draws a picture in one of [Formats].
func Write(w io.Writer, p Picture, format string, o Options) error {
	for _, f := range formats {
		if f.name == format {
			return f.draw(w, p, o)
		}
	}
	return fmt.Errorf("no such format: %q; known are %q", format, Formats())
}
