package layout

// block is a connected part of a level, placed by itself.
type block struct {
	m      Metrics
	nets   *int // counter of nets, shared by all blocks
	items  []*item
	links  []*link
	loose  bool // of items that no link connects
	layers [][]*item
	hops   []*hop
	netsOf []*net
	w, h   int
}

// place gives all items of the block their coordinates and routes its links.
func (b *block) place() {
	if b.loose {
		b.spread()
	} else {
		b.rank()
	}
	b.chain()
	b.order()
	b.rows()
	b.route()
}

// spread deals items that nothing connects out over some columns.
func (b *block) spread() {
	inner := 0
	for _, it := range b.items {
		if it.kind != entry && it.kind != exit {
			inner++
		}
	}
	columns := 1
	for columns*columns < inner {
		columns++
	}
	n := 0
	for _, it := range b.items {
		switch it.kind {
		case entry:
			it.layer = 0
		case exit:
			it.layer = columns + 1
		default:
			it.layer = 1 + n%columns
			n++
		}
	}
	b.compress()
}

// rank puts items in layers so that as many links as possible lead to the right, and all that are in no circle: in as few
// layers as they need, and with wires as short as they can be.
func (b *block) rank() {
	g := newDigraph(b.items, b.links)
	g.cut()
	layers := shortest(b.arcs(g))
	end := layers[len(b.items)+1]
	for i, it := range b.items {
		switch it.kind {
		case entry, first:
			it.layer = int(it.kind)
		case last, exit:
			it.layer = int(anywhere) + end + int(it.kind-last)
		default:
			it.layer = int(first) + layers[i]
		}
	}
	b.compress()
}

// arcs are the links as shortest takes them, and the order of the items. What stands on the left or the right of all others is
// one item for each side, behind those of the block.
func (b *block) arcs(g *digraph) (n int, arcs []arc, order []int) {
	n = len(b.items) + 2
	left, right := n-2, n-1
	at := func(i int) int {
		switch b.items[i].kind {
		case entry, first:
			return left
		case last, exit:
			return right
		default:
			return i
		}
	}
	order = append(order, left)
	for _, i := range g.topological() {
		if at(i) == i {
			order = append(order, i)
			arcs = append(arcs, arc{left, i, 0}, arc{i, right, 0})
		}
		for _, to := range g.out[i] {
			if from, to := at(i), at(to); from != right && to != left && from != to {
				arcs = append(arcs, arc{from, to, 1})
			}
		}
	}
	// A picture that is as narrow as it can be comes first.
	return n, append(arcs, arc{left, right, len(arcs) + 1}), append(order, right)
}

// compress leaves out empty layers.
func (b *block) compress() {
	used := make(map[int]int)
	most := 0
	for _, it := range b.items {
		used[it.layer] = 0
		most = max(most, it.layer)
	}
	n := 0
	for l := 0; l <= most; l++ {
		if _, ok := used[l]; ok {
			used[l] = n
			n++
		}
	}
	for _, it := range b.items {
		it.layer = used[it.layer]
	}
	b.layers = make([][]*item, n)
}

// digraph is who follows whom. Parallel links count once each.
type digraph struct {
	in, out  [][]int
	feedback map[[2]int]bool
}

func newDigraph(items []*item, links []*link) *digraph {
	index := make(map[*item]int, len(items))
	for i, it := range items {
		index[it] = i
	}
	g := &digraph{in: make([][]int, len(items)), out: make([][]int, len(items)), feedback: make(map[[2]int]bool)}
	for _, k := range links {
		from, to := index[k.from.item], index[k.to.item]
		if from == to {
			continue
		}
		g.out[from] = append(g.out[from], to)
		g.in[to] = append(g.in[to], from)
		if k.feedback {
			g.feedback[[2]int{from, to}] = true
		}
	}
	return g
}

// cut takes edges away until there is no circle: first those in a circle that are meant
// to lead back, then those that lead back to where a walk from the beginning came from.
func (g *digraph) cut() {
	if len(g.feedback) > 0 {
		circle := g.circles()
		g.keep(func(from, to int) bool { return !g.feedback[[2]int{from, to}] || circle[from] != circle[to] })
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(g.out))
	back := make(map[[2]int]bool)
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		for _, to := range g.out[i] {
			switch state[to] {
			case open:
				back[[2]int{i, to}] = true
			case unseen:
				visit(to)
			}
		}
		state[i] = done
	}
	for _, sources := range []bool{true, false} {
		for i := range g.out {
			if state[i] == unseen && (len(g.in[i]) == 0 || !sources) {
				visit(i)
			}
		}
	}
	g.keep(func(from, to int) bool { return !back[[2]int{from, to}] })
}

// keep takes all edges away that are not wanted.
func (g *digraph) keep(wanted func(from, to int) bool) {
	g.in = make([][]int, len(g.in))
	for from := range g.out {
		var kept []int
		for _, to := range g.out[from] {
			if wanted(from, to) {
				kept = append(kept, to)
				g.in[to] = append(g.in[to], from)
			}
		}
		g.out[from] = kept
	}
}

// circles numbers the strongly connected parts (Tarjan).
func (g *digraph) circles() []int {
	n := len(g.out)
	part, low, num := make([]int, n), make([]int, n), make([]int, n)
	onStack := make([]bool, n)
	var stack []int
	count, parts := 0, 0
	var visit func(i int)
	visit = func(i int) {
		count++
		num[i], low[i] = count, count
		stack = append(stack, i)
		onStack[i] = true
		for _, to := range g.out[i] {
			if num[to] == 0 {
				visit(to)
				low[i] = min(low[i], low[to])
			} else if onStack[to] {
				low[i] = min(low[i], num[to])
			}
		}
		for done := low[i] != num[i]; !done; {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[top] = false
			part[top] = parts
			done = top == i
		}
		if low[i] == num[i] {
			parts++
		}
	}
	for i := range g.out {
		if num[i] == 0 {
			visit(i)
		}
	}
	return part
}

// topological lists the items so that edges lead forward. There must be no circle.
func (g *digraph) topological() []int {
	missing := make([]int, len(g.in))
	var order []int
	for i := range g.in {
		missing[i] = len(g.in[i])
		if missing[i] == 0 {
			order = append(order, i)
		}
	}
	for n := 0; n < len(order); n++ {
		for _, to := range g.out[order[n]] {
			if missing[to]--; missing[to] == 0 {
				order = append(order, to)
			}
		}
	}
	return order
}
