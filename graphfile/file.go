package graphfile

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
)

// Version is the version of Weir's format that this package reads and writes.
const Version = 1

// What a file may be. See the package comment for the limits of YAML.
const (
	// MaxSize is the greatest size of a file in bytes.
	MaxSize = 4 << 20
	// MaxDepth is how deep maps and lists may lie in one another.
	MaxDepth = 100
)

// Pos is a place in a file. Line and Column are counted from 1, the column in
// characters; both are 0 if the place is not known.
type Pos struct {
	Line, Column int
}

// File is a graph as a file defines it.
type File struct {
	// Source is the name that the file was parsed under, for messages.
	Source string
	// Name is the name of the graph; empty if the file gives none.
	Name string
	// Description is for people.
	Description string
	// Retain is for how long a tree of the graph is kept after it has settled, as [job.ParseRetention] reads it; empty if the
	// file does not say. Graphs have none.
	Retain string
	// SequentialKey lets trees of the graph be active one after the other, see [job.SequentialKey]; empty if the file does not
	// say. Graphs have none.
	SequentialKey string
	// Unique lets a tree of the graph be started unless one that is the same work is there; nil if the file does not say. Graphs
	// have none.
	Unique *Unique
	// Priority is that of the jobs in the graph whose nodes and types name none; nil if the file does not say.
	Priority *int
	// Params are the parameters of the graph.
	Params []Param
	// Nodes are the nodes in the order of the file.
	Nodes []Node
	// Edges are the edges in the order of the file.
	Edges []Edge
	// Inputs are the graph's own In ports and where they lead to.
	Inputs []Export
	// Outputs are the graph's own Out ports and what feeds them.
	Outputs []Export
	// Graphs are definitions that nodes here and in them can have as their type.
	Graphs []File
	// Metadata is a JSON object that means nothing to Weir, or nil.
	Metadata json.RawMessage
	// Literal says that ${ means nothing in the values of this graph (those in
	// Graphs speak for themselves). [File.Expand] sets it.
	Literal bool
	// Pos is where the definition begins.
	Pos Pos

	wrong *problems // of a draft: what is wrong with its text
}

// Unique says which trees of a graph are the same work, see [job.UniqueBy].
type Unique struct {
	// Key is what they have in common; empty: the definition of the graph.
	Key string
	// For is the window, a time like 1h; empty: until done.
	For string
	// Pos is where it is said.
	Pos Pos
}

// By is what it says.
func (u Unique) By() (by job.UniqueBy, err error) {
	by.Key = u.Key
	if u.For != "" {
		if by.For, err = time.ParseDuration(u.For); err != nil || by.For == 0 {
			return by, fmt.Errorf("for: is %.40q: use a time like 30s or 1h30m", u.For)
		}
	}
	return by, by.Validate()
}

// The types of parameters.
const (
	TypeString = "string" // a text
	TypeInt    = "int"    // a number without fraction or exponent, of any size
	TypeNumber = "number" // any number
	TypeBool   = "bool"   // true or false
	TypeJSON   = "json"   // anything
)

// Param is a parameter of a graph.
type Param struct {
	// Name is what stands in ${name}.
	Name string
	// Type is one of the constants above.
	Type string
	// Default is the value used when none is given; nil if one must be.
	Default json.RawMessage
	// Description is for people.
	Description string
	// Pos is where the parameter is declared.
	Pos Pos
}

// What happens to the graph when a job of a node fails for good; the empty text
// leaves it to whoever builds the graph.
const (
	FailureFail       = "fail"        // the graph fails
	FailureRestart    = "restart"     // the job begins anew
	FailureIgnore     = "ignore"      // the graph goes on without the job
	FailureDeadLetter = "dead_letter" // what it could not work on is put aside
)

// Node is a node of a graph.
type Node struct {
	// Name is unique in the graph.
	Name string
	// Type is a worker type, or the name of a graph in reach.
	Type string
	// Description is for people.
	Description string
	// Args is a JSON object, or nil for none.
	Args json.RawMessage
	// Queue is the queue of the node's jobs; empty for the default.
	Queue string
	// Instances is the number of jobs; 0 if the file does not say.
	Instances int
	// Failure is one of the constants above, or empty.
	Failure string
	// Priority is that of the node's jobs, from 0 to 1000; nil if the file does not say.
	Priority *int
	// Labels are short texts by which the node's jobs are found again, as [job.Node] has them; nil for none.
	Labels map[string]string
	// Tries is how many runs in a row may fail before a job of the node does; 0 if the file does not say.
	Tries int
	// Backoff is the delay before the second try, which doubles up to MaxBackoff, and Timeout what ends a run that takes
	// longer: times like 30s; empty if the file does not say.
	Backoff, MaxBackoff, Timeout string
	// In are the In ports about which there is something to say.
	In []In
	// Metadata is a JSON object that means nothing to Weir, or nil.
	Metadata json.RawMessage
	// Pos is where the node is defined.
	Pos Pos
}

// In is what a file says about an In port of a node.
type In struct {
	// Port is the port's name.
	Port string
	// Values are messages that wait in the port from the beginning.
	Values []json.RawMessage
	// Default is read while the port is empty; nil for none.
	Default json.RawMessage
	// Limit is the number of messages at which the port is full; 0 for none.
	Limit int
	// Metadata is a JSON object that means nothing to Weir, or nil.
	Metadata json.RawMessage
	// Pos is where the port is mentioned.
	Pos Pos
}

// End is a port of a node.
type End struct {
	Node, Port string
}

// String returns "node.port".
func (e End) String() string { return e.Node + "." + e.Port }

// Edge leads from an Out port to an In port.
type Edge struct {
	// From is where messages come from, To where they go.
	From, To End
	// Limit is the number of messages at which the edge is full; 0 for none.
	Limit int
	// Feedback marks the edge that closes a cycle.
	Feedback bool
	// Metadata is a JSON object that means nothing to Weir, or nil.
	Metadata json.RawMessage
	// Pos is where the edge is written.
	Pos Pos
}

// Export is a port of a graph and the ports of its nodes that it stands for.
type Export struct {
	// Name is the name of the graph's port.
	Name string
	// Ends are the ports that an input leads to, or that feed an output.
	Ends []End
	// Metadata is a JSON object that means nothing to Weir, or nil.
	Metadata json.RawMessage
	// Pos is where the export is written.
	Pos Pos
}
