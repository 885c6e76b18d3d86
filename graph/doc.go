// Package graph builds, checks and plans graphs of jobs.
//
// A graph is made of workers and of the wires between their ports. The handles
// of the workers say what goes where, so a wire between ports of different types
// does not compile:
//
//	g := graph.New("album")
//	list := graph.Add(g, "list", &ListDir{Dir: "photos"})
//	resize := graph.Add(g, "resize", &Resize{}, graph.Instances(4))
//	graph.Connect(list.Files, resize.In)
//	graph.Export(g, "thumbs", resize.Thumb)
//
// Nothing that builds a graph returns an error or panics over a mistake. The
// mistakes are collected, and [Graph.Plan] reports all of them, one a line, each
// beginning with the place it is at: album for the graph, album.thumbs for a port
// of its own, album/resize for a job and album/resize.in for a port of a job.
//
// The package is pure: it has no clock, starts no goroutine and does no I/O. A
// graph is to be built by one goroutine at a time; once it is built and its
// workers change no more, any number may plan it.
package graph
