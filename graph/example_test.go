package graph_test

import (
	"fmt"

	"github.com/weirworks/weir/graph"
)

// A folder is listed, its photos are made smaller by two jobs, and what they make
// comes out of the graph.
func Example() {
	g := graph.New("album")
	list := graph.Add(g, "list", &ListDir{Dir: "photos"})
	resize := graph.Add(g, "resize", &Resize{}, graph.Instances(2))
	graph.Connect(list.Files, resize.In)
	graph.Export(g, "thumbs", resize.Thumb)

	plan, err := g.Plan()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, job := range plan.Nodes {
		fmt.Println(i, job.Name)
		for _, port := range job.Ports {
			fmt.Println("  ", port.Dir, port.Name, port.Edges)
		}
	}
	// Output:
	// 0 album
	//    out thumbs []
	// 1 list
	//    out files [[2.in 3.in]]
	// 2 resize_1
	//    in in []
	//    in width []
	//    out thumb [[0.thumbs]]
	// 3 resize_2
	//    in in []
	//    in width []
	//    out thumb [[0.thumbs]]
}

// All mistakes are reported at once.
func ExampleGraph_Plan() {
	g := graph.New("album")
	list := graph.Add(g, "list", &ListDir{Dir: "photos"}, graph.Instances(0))
	resize := &Resize{} // not added
	graph.Connect(list.Files, resize.In)
	graph.Add(g, "list", &Pack{})

	_, err := g.Plan()
	fmt.Println(err)
	// Output:
	// album/list: graph.Instances(0): use at least 1
	// album/list.files: leads to a port.In[graph_test.Image] that belongs to no job: Add its worker first, then use the handle of what Add returned; did you mean album/list.images?
	// album/list: already exists: a graph_test.ListDir has this name; did you mean "list2"?
}
