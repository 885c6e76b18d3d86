package api

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// LiveNodes are the nodes of a picture, in columns: those of the same index belong together. Groups come before what is in them.
type LiveNodes struct {
	ID     []string    `json:"id"`
	Job    []job.ID    `json:"job" doc:"the first of the jobs that a box stands for; empty for an input or output of the graph"`
	Label  []string    `json:"label"`
	Type   []string    `json:"type"`
	Kind   []draw.Kind `json:"kind" doc:"0 a job, 1 a subgraph, 2 an input, 3 an output"`
	Parent []int       `json:"parent" doc:"the frame around it, -1 for none"`
	Frame  []bool      `json:"frame" doc:"others are in it"`
	Fold   []string    `json:"fold" doc:"what toggle makes of it: close, open, or nothing; behind it the ID to toggle"`
	X      []int       `json:"x"`
	Y      []int       `json:"y"`
	W      []int       `json:"w"`
	H      []int       `json:"h"`
	Pins   [][]LivePin `json:"pins"`
	Status []int       `json:"status" doc:"an index in statuses, -1 for none"`
	Counts [][]int     `json:"counts" doc:"of a box for several jobs: how many have each of the statuses"`
	Note   []string    `json:"note" doc:"why it waits, in a few words"`
	Dead   []int64     `json:"dead" doc:"dead letters in the ports errors of its jobs"`
}

// LivePin is where a port is drawn.
type LivePin struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
}

// LiveEdges are the edges of a picture, in columns.
type LiveEdges struct {
	From     []int    `json:"from"`
	FromPort []string `json:"from_port"`
	To       []int    `json:"to"`
	ToPort   []string `json:"to_port"`
	Spawn    []bool   `json:"spawn" doc:"it leads to children that runs spawned"`
	Limit    []int    `json:"limit" doc:"how many messages may wait; 0 for any number"`
	Points   [][]int  `json:"points" doc:"x and y of each point where it turns"`
	Waiting  []int64  `json:"waiting"`
	Total    []int64  `json:"total" doc:"messages that have passed"`
}

// LivePicture is a tree as it is drawn.
type LivePicture struct {
	Epoch    int64                 `json:"epoch" doc:"indexes count within one epoch"`
	Seq      int64                 `json:"seq"`
	MS       int64                 `json:"ms" doc:"the server's clock"`
	Title    string                `json:"title"`
	Root     job.ID                `json:"root"`
	Jobs     int                   `json:"jobs"`
	W        int                   `json:"w"`
	H        int                   `json:"h"`
	Statuses []statemachine.Status `json:"statuses"`
	Nodes    LiveNodes             `json:"nodes"`
	Edges    LiveEdges             `json:"edges"`
}

// LiveChanges are the values that are others since an earlier event: absolute ones, by index.
type LiveChanges struct {
	Epoch   int64    `json:"epoch"`
	Seq     int64    `json:"seq"`
	MS      int64    `json:"ms"`
	Edges   []int    `json:"e"`
	Waiting []int64  `json:"w"`
	Total   []int64  `json:"t"`
	Nodes   []int    `json:"n"`
	Status  []int    `json:"s"`
	Counts  [][]int  `json:"c"`
	Note    []string `json:"o"`
	Dead    []int64  `json:"d"`
}

// livePicture is a picture with the number of the reading that changed each value last.
type livePicture struct {
	LivePicture
	latest      int64 // reading that found something new
	shape       uint64
	index       map[string]int // of nodes
	nodesAt     []int64
	edgesAt     []int64
	root        *job.Info
	members     map[string][]*job.Info // that nodes stand for, by the IDs of these; nil: not known
	byID        map[job.ID]*job.Info
	nodeOf      map[job.ID]int // that a job is drawn as; of none: it is drawn as the edge of the picture
	groupInside []bool         // by edge: it begins at the inner side of its group
	endsInside  []bool
}

var liveSeed = maphash.MakeSeed()

// update takes a reading with its number. Fresh means that the picture has another shape.
func (l *livePicture) update(now reading, view draw.View, seq int64) (fresh bool, err error) {
	if l.MS = time.Now().UnixMilli(); now.alike && l.members != nil {
		for _, i := range now.changed {
			l.updateNode(l.nodeOf[i.ID], seq)
		}
		l.updateEdges(seq)
		return false, nil
	}
	picture, members := view.Jobs(now.tree)
	l.members = nil // if it cannot be drawn the next reading is drawn as a whole
	if shape := shapeOf(picture); shape != l.shape || l.index == nil {
		placed, err := draw.Place(steady(picture))
		if err != nil {
			return false, err
		}
		l.place(placed, members, view)
		l.shape, l.latest, fresh = shape, seq, true
	}
	l.Title, l.Root, l.Jobs = picture.Title, now.tree[0].ID, len(now.tree)
	l.root, l.members, l.byID, l.nodeOf = now.tree[0], members, make(map[job.ID]*job.Info, len(now.tree)), make(map[job.ID]int, len(now.tree))
	for _, i := range now.tree {
		l.byID[i.ID] = i
	}
	for id, at := range l.index {
		for _, i := range members[id] {
			l.nodeOf[i.ID] = at
		}
		l.updateNode(at, seq)
	}
	l.updateEdges(seq)
	return fresh, nil
}

// steady is a picture with room for any status, and none for notes: what changes all the time must not move boxes.
func steady(p draw.Picture) draw.Picture {
	nodes := slices.Clone(p.Nodes)
	for i := range nodes {
		nodes[i].Note, nodes[i].Out = "", slices.Clone(nodes[i].Out)
		for n := range nodes[i].Out {
			nodes[i].Out[n].Waiting = 0
		}
		if nodes[i].Status != "" {
			nodes[i].Status = statemachine.Terminating
		}
	}
	p.Nodes = nodes
	return p
}

// shapeOf changes with all that is placed.
func shapeOf(p draw.Picture) uint64 {
	var h maphash.Hash
	h.SetSeed(liveSeed)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		fmt.Fprintf(&h, "%q%q%q%d", n.ID, n.Type, n.Group, n.Kind)
		for _, q := range n.In {
			h.WriteString(q.Name)
			h.WriteByte(1)
		}
		for _, q := range n.Out {
			h.WriteString(q.Name)
			h.WriteByte(2)
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		fmt.Fprintf(&h, "%q%q%q%q%d", e.From, e.FromPort, e.To, e.ToPort, e.Limit)
	}
	return h.Sum64()
}

// place makes the columns anew.
func (l *livePicture) place(p *draw.Placed, members map[string][]*job.Info, view draw.View) {
	l.index = make(map[string]int, len(p.Nodes))
	for i := range p.Nodes {
		l.index[p.Nodes[i].ID] = i
	}
	n, e := len(p.Nodes), len(p.Edges)
	l.W, l.H, l.Statuses = p.W, p.H, statemachine.Statuses()
	l.Nodes = LiveNodes{
		ID: make([]string, 0, n), Job: make([]job.ID, 0, n), Label: make([]string, 0, n), Type: make([]string, 0, n), Kind: make([]draw.Kind, 0, n),
		Parent: make([]int, 0, n), Frame: make([]bool, 0, n), Fold: make([]string, 0, n), X: make([]int, 0, n), Y: make([]int, 0, n), W: make([]int, 0, n),
		H: make([]int, 0, n), Pins: make([][]LivePin, 0, n), Status: slices.Repeat([]int{-1}, n), Counts: make([][]int, n), Note: make([]string, n), Dead: make([]int64, n),
	}
	l.Edges = LiveEdges{
		From: make([]int, 0, e), FromPort: make([]string, 0, e), To: make([]int, 0, e), ToPort: make([]string, 0, e), Spawn: make([]bool, 0, e),
		Limit: make([]int, 0, e), Points: make([][]int, 0, e), Waiting: make([]int64, e), Total: make([]int64, e),
	}
	l.nodesAt, l.edgesAt = make([]int64, n), make([]int64, e)
	l.groupInside, l.endsInside = make([]bool, e), make([]bool, e)
	apart := spawnedApart(view)
	for i := range p.Nodes {
		l.addNode(&p.Nodes[i], members, apart)
	}
	for i := range p.Edges {
		q := &p.Edges[i]
		from, to := l.index[q.From], l.index[q.To]
		points := make([]int, 0, 2*len(q.Points))
		for _, at := range q.Points {
			points = append(points, at[0], at[1])
		}
		c := &l.Edges
		c.From, c.To = append(c.From, from), append(c.To, to)
		c.FromPort, c.ToPort = append(c.FromPort, q.FromPort), append(c.ToPort, q.ToPort)
		c.Spawn, c.Limit, c.Points = append(c.Spawn, q.FromPort == draw.SpawnPort), append(c.Limit, max(q.Limit, 0)), append(c.Points, points)
		l.groupInside[i] = p.Nodes[from].Frame && (from == to || l.within(to, from))
		l.endsInside[i] = p.Nodes[to].Frame && (from == to || l.within(from, to))
	}
}

// within tells whether a node is somewhere in a frame.
func (l *livePicture) within(n, frame int) bool {
	for n = l.Nodes.Parent[n]; n >= 0; n = l.Nodes.Parent[n] {
		if n == frame {
			return true
		}
	}
	return false
}

func (l *livePicture) addNode(p *draw.PlacedNode, members map[string][]*job.Info, apart map[string]string) {
	c := &l.Nodes
	parent := -1
	if at, ok := l.index[p.Group]; ok && p.Group != "" {
		parent = at
	}
	var first job.ID
	all := members[p.ID]
	if len(all) > 0 {
		first = all[0].ID
	}
	fold := ""
	switch {
	case strings.HasSuffix(p.Label, severalMark) && len(all) > 1:
		fold = "open " + p.ID
	case p.Kind == draw.Group && p.Frame:
		fold = "close " + p.ID
	case p.Kind == draw.Group && len(all) > 1:
		fold = "open " + p.ID
	case apart[p.ID] != "":
		fold = "close " + apart[p.ID]
	}
	pins := make([]LivePin, 0, len(p.Pins))
	for _, q := range p.Pins {
		dir := "in"
		if q.Dir == port.Output {
			dir = "out"
		}
		pins = append(pins, LivePin{q.Name, dir, q.X, q.Y})
	}
	c.ID, c.Job, c.Label, c.Type = append(c.ID, p.ID), append(c.Job, first), append(c.Label, p.Label), append(c.Type, p.Type)
	c.Kind, c.Parent, c.Frame, c.Fold = append(c.Kind, p.Kind), append(c.Parent, parent), append(c.Frame, p.Frame), append(c.Fold, fold)
	c.X, c.Y, c.W, c.H = append(c.X, p.X), append(c.Y, p.Y), append(c.W, p.W), append(c.H, p.H)
	c.Pins = append(c.Pins, pins)
}

// severalMark is behind the name of a box of several children that runs spawned.
const severalMark = " \u00d7"

// spawnedApart are what toggles the boxes of children that a view draws each, by the job whose runs spawned them.
func spawnedApart(view draw.View) map[string]string {
	apart := make(map[string]string)
	for path := range view.Toggled {
		at := strings.LastIndexByte(path, '/')
		if at < 0 || !strings.HasSuffix(path, severalMark) {
			continue
		}
		if known := apart[path[:at]]; known == "" || path < known {
			apart[path[:at]] = path
		}
	}
	return apart
}

// updateNode takes the status of a node.
func (l *livePicture) updateNode(at int, seq int64) {
	all := l.members[l.Nodes.ID[at]]
	state, note := draw.Stand(all)
	status := slices.Index(l.Statuses, state)
	var counts []int
	if len(all) > 1 {
		counts = make([]int, len(l.Statuses))
		for _, i := range all {
			if s := slices.Index(l.Statuses, i.Status); s >= 0 {
				counts[s]++
			}
		}
	}
	var dead int64
	for _, i := range all {
		p, _ := i.Port(port.Output, job.ErrorsPort)
		dead += p.Waiting
	}
	c := &l.Nodes
	if c.Status[at] == status && c.Note[at] == note && c.Dead[at] == dead && slices.Equal(c.Counts[at], counts) {
		return
	}
	c.Status[at], c.Note[at], c.Counts[at], c.Dead[at] = status, note, counts, dead
	l.nodesAt[at], l.latest = seq, seq
}

// updateEdges takes what waits and what has passed.
func (l *livePicture) updateEdges(seq int64) {
	c := &l.Edges
	for i := range c.From {
		if c.Spawn[i] {
			continue
		}
		from, to := l.ends(c.From[i]), l.ends(c.To[i])
		fromDir, toDir := port.Output, port.Input
		if l.groupInside[i] || l.Nodes.Kind[c.From[i]] == draw.Input {
			fromDir = port.Input
		}
		if l.endsInside[i] || l.Nodes.Kind[c.To[i]] == draw.Output {
			toDir = port.Output
		}
		fromPort, toPort := c.FromPort[i], c.ToPort[i]
		if fromPort == "" {
			fromPort = l.Nodes.Label[c.From[i]]
		}
		if toPort == "" {
			toPort = l.Nodes.Label[c.To[i]]
		}
		var total, waiting int64
		for _, j := range from {
			p, _ := j.Port(fromDir, fromPort)
			total += p.Total
		}
		for _, j := range to {
			waiting += queued(j, toDir, toPort, l.byID, 0)
		}
		if c.Waiting[i] != waiting || c.Total[i] != total {
			c.Waiting[i], c.Total[i] = waiting, total
			l.edgesAt[i], l.latest = seq, seq
		}
	}
}

// ends are the jobs that have the ports at one end of an edge.
func (l *livePicture) ends(node int) []*job.Info {
	switch all := l.members[l.Nodes.ID[node]]; {
	case l.Nodes.Kind[node] == draw.Input, l.Nodes.Kind[node] == draw.Output:
		return []*job.Info{l.root}
	case l.Nodes.Kind[node] == draw.Group && len(all) > 0:
		return all[:1]
	default:
		return all
	}
}

// queued is what waits in a port, or where a port of a graph leads to.
func queued(j *job.Info, dir port.Dir, name string, byID map[job.ID]*job.Info, depth int) int64 {
	p, ok := j.Port(dir, name)
	if !ok || depth > 20 {
		return 0
	}
	sum := p.Waiting
	if j.Graph && dir == port.Input {
		for _, edge := range p.Edges {
			for _, end := range edge {
				if to := byID[end.Job]; to != nil && end.Dir == port.Input {
					sum += queued(to, end.Dir, end.Port, byID, depth+1)
				}
			}
		}
	}
	return sum
}

// snapshot is the whole picture.
func (l *livePicture) snapshot(epoch, seq int64) []byte {
	l.Epoch, l.Seq = epoch, seq
	raw, _ := json.Marshal(l.LivePicture)
	return raw
}

// changes are the values that are others since a reading.
func (l *livePicture) changes(epoch, seq, since int64) []byte {
	c := LiveChanges{Epoch: epoch, Seq: seq, MS: l.MS}
	for i, at := range l.edgesAt {
		if at > since {
			c.Edges, c.Waiting, c.Total = append(c.Edges, i), append(c.Waiting, l.Edges.Waiting[i]), append(c.Total, l.Edges.Total[i])
		}
	}
	for i, at := range l.nodesAt {
		if at > since {
			c.Nodes, c.Status, c.Counts, c.Note = append(c.Nodes, i), append(c.Status, l.Nodes.Status[i]), append(c.Counts, l.Nodes.Counts[i]), append(c.Note, l.Nodes.Note[i])
			c.Dead = append(c.Dead, l.Nodes.Dead[i])
		}
	}
	raw, _ := json.Marshal(c)
	return raw
}
