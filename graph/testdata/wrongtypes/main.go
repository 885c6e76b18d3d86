// The lines marked below must not compile, all others must.
package main

import (
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
)

type list struct {
	Files port.Out[string]
}

type resize struct {
	In    port.In[string]
	Width port.In[int]
	Thumb port.Out[[]byte]
}

func main() {
	g := graph.New("album")
	l := graph.Add(g, "list", &list{})
	r := graph.Add(g, "resize", &resize{})
	graph.Connect(l.Files, r.In)
	graph.Connect(l.Files, r.Width) // wrong: string to int
	graph.Connect(r.Thumb, r.In)    // wrong: []byte to string
	graph.Connect(l.Files, r.Thumb) // wrong: out to out
	graph.Connect(r.In, l.Files)    // wrong: backwards
	graph.Connect(graph.Input[string](g, "names"), r.In)
	graph.Connect(graph.Input[int](g, "sizes"), r.In) // wrong: int to string
	graph.Export(g, "thumbs", r.Thumb)
	graph.Export(g, "thumbs", r.In) // wrong: exports an input
}
