package graphfile

import (
	"fmt"
	"strings"
)

// fbpReader makes a File of statements.
type fbpReader struct {
	*importer
	*fbpScanner
	anonymous map[string]int    // by what their names begin with
	metas     map[string]string // the metadata of the nodes that have some
}

// fromFBP makes a File of the language of flowbased/fbp.
func fromFBP(p *problems, src *source) *File {
	s := &fbpScanner{problems: p, src: src, ports: [2]string{"IN", "OUT"}}
	s.scan()
	r := &fbpReader{newImporter(p, true), s, make(map[string]int), make(map[string]string)}
	r.file.Pos = Pos{1, 1}
	r.annotate()
	r.declare()
	for i, hops := range r.chains {
		r.connect(hops, r.defaults[i])
	}
	for _, line := range r.settings {
		m := fbpExport.FindStringSubmatch(line.text)
		to := stop{node: m[1], port: m[3], index: -1, pos: line.pos}
		if line.key == "INPORT" {
			r.export(&r.file.Inputs, "In", m[4], to, nil, "")
		} else {
			r.export(&r.file.Outputs, "Out", m[4], to, nil, "")
		}
	}
	return r.finish()
}

func (r *fbpReader) say(pos Pos, format string, args ...any) {
	r.importer.problems.add(pos, "", format, args...)
}

// annotate reads the comments that say something about the whole graph.
func (r *fbpReader) annotate() {
	properties := &value{}
	known := make(map[string]bool)
	for _, a := range r.annotations {
		if known[a.key] {
			r.say(a.pos, "@%s is there already", a.key)
			continue
		}
		known[a.key] = true
		switch a.key {
		case "runtime":
			environment := &value{}
			environment.put("type", textValue(a.text))
			properties.put("environment", environment)
		case "caseSensitive":
			if a.text != "true" && a.text != "false" {
				r.say(a.pos, "@caseSensitive %s: use true or false", a.text)
			}
			r.lower = a.text != "true"
		case "description":
			r.file.Description = a.text
		case "environment", weirKey, nofloKey:
			r.say(a.pos, "@%s has another meaning here: rename it", a.key)
		default:
			properties.put(a.key, textValue(a.text))
		}
	}
	r.file.Metadata = r.name(properties).rawObject()
}

// declare adds the nodes, each where its component is first given.
func (r *fbpReader) declare() {
	var nodes []*fbpTerm
	taken := make(map[string]bool)
	for _, hops := range r.chains {
		for i := range hops {
			for j := range hops[i].terms {
				if t := &hops[i].terms[j]; t.component {
					nodes = append(nodes, t)
					taken[tidy(t.name)] = true
				}
			}
		}
	}
	for _, t := range nodes {
		if t.name == "" && !r.nameNode(t, taken) {
			continue
		}
		r.declareNode(t)
	}
	for _, n := range r.file.Nodes {
		if n.Type == "" {
			r.importer.problems.add(n.Pos, under("nodes", n.Name, "type"), "is missing: write %s(Component) once", r.ids[n.Name])
		}
	}
}

func (r *fbpReader) declareNode(t *fbpTerm) {
	if !fbpNode.MatchString(t.name) {
		r.say(t.pos, "the name of a node cannot be %q: use letters, digits, _ and -", t.name)
		return
	}
	if _, known := r.nodes[t.name]; !known && r.addNode(t.name, nil, t.pos, "") == nil {
		return
	}
	n := &r.file.Nodes[r.nodes[t.name]]
	switch {
	case t.typ != "" && n.Type != "" && n.Type != t.typ:
		r.say(t.pos, "%s has the component %s already, and gets %s here", t.name, n.Type, t.typ)
	case t.typ != "":
		n.Type = t.typ
	}
	switch had := r.metas[t.name]; {
	case t.meta == "" || t.meta == had:
	case had != "":
		r.say(t.pos, "%s has other metadata already", t.name)
	default:
		r.metas[t.name] = t.meta
		n.Metadata = r.importer.metadata(r.fbpScanner.metadata(*t), ownID(t.name), t.pos, "")
	}
}

// nameNode gives a node without a name the one that other tools would give it.
func (r *fbpReader) nameNode(t *fbpTerm, taken map[string]bool) bool {
	if t.typ == "" {
		r.say(t.pos, "() is neither a node nor a component")
		return false
	}
	begin := "_" + tidy(t.typ) + "_"
	for t.name == "" || taken[t.name] {
		r.anonymous[begin]++
		t.name = fmt.Sprintf("%s%d", begin, r.anonymous[begin])
	}
	taken[t.name] = true
	return true
}

// sides is what a hop means: a node, the port it is entered by and that it is left by.
type sides struct {
	in, out stop
}

// connect adds what a chain says.
func (r *fbpReader) connect(hops []fbpHop, defaults [2]string) {
	if len(hops) == 1 {
		r.alone(hops[0])
		return
	}
	var from *fbpHop
	var before sides
	for i := range hops {
		hop := &hops[i]
		if hop.data != nil {
			if i > 0 {
				r.say(hop.pos, "data can only begin a chain")
				return
			}
			from = hop
			continue
		}
		now, ok := r.resolve(hop, defaults, i > 0, i < len(hops)-1)
		if !ok {
			return
		}
		switch {
		case i == 0:
		case from != nil && from.data != nil:
			r.send(now.in, from.data, nil, from.pos, "")
		default:
			r.edge(before.out, now.in, nil, before.out.pos, "")
		}
		from, before = hop, now
	}
}

// alone is a statement without an arrow: it can only declare a node.
func (r *fbpReader) alone(hop fbpHop) {
	if hop.data != nil || len(hop.terms) != 1 || !hop.terms[0].component {
		r.say(hop.pos, "this leads nowhere: write -> and a node, or declare one with Node(Component)")
	}
}

// resolve tells the ports of a hop from its node.
func (r *fbpReader) resolve(hop *fbpHop, defaults [2]string, entered, left bool) (sides, bool) {
	node := r.nodeOf(hop.terms, entered, left)
	if node < 0 {
		r.say(hop.pos, "%s: which of them is the node? Write %s", fbpText(hop.terms), fbpForm(entered, left))
		return sides{}, false
	}
	name := hop.terms[node].name
	if name == "" {
		return sides{}, false // reported by nameNode
	}
	if t := hop.terms[node]; t.index >= 0 {
		r.say(t.pos, "%s is a node and has no index", t.name)
		return sides{}, false
	}
	s := sides{
		in:  stop{node: name, port: defaults[0], index: -1, pos: hop.pos},
		out: stop{node: name, port: defaults[1], index: -1, pos: hop.pos},
	}
	for i, t := range hop.terms {
		to := &s.in
		if i == node {
			continue
		} else if i > node {
			to = &s.out
		}
		if t.component || !fbpPort.MatchString(t.name) {
			r.say(t.pos, "%s is no port", fbpText(hop.terms[i:i+1]))
			return sides{}, false
		}
		to.port, to.index, to.pos = t.name, t.index, t.pos
	}
	return s, true
}

// nodeOf returns which of the words is the node, -1 if that cannot be told.
func (r *fbpReader) nodeOf(terms []fbpTerm, entered, left bool) int {
	known := func(i int) bool {
		_, ok := r.nodes[terms[i].name]
		return terms[i].component || ok && terms[i].index < 0
	}
	switch n := len(terms); {
	case n == 1:
		return 0
	case n == 2 && entered && left:
		if known(0) == known(1) && terms[0].component == terms[1].component {
			return -1
		}
		if terms[0].component || known(0) && !terms[1].component {
			return 0
		}
		return 1
	case n == 2 && left:
		return 0
	case n == 2, n == 3 && entered && left:
		return 1
	default:
		return -1
	}
}

func fbpText(terms []fbpTerm) string {
	words := make([]string, len(terms))
	for i, t := range terms {
		words[i] = t.name
		if t.index >= 0 {
			words[i] += fmt.Sprintf("[%d]", t.index)
		}
		if t.component {
			words[i] += "(" + t.typ + ")"
		}
	}
	return strings.Join(words, " ")
}

// fbpForm is how a hop is written.
func fbpForm(entered, left bool) string {
	switch {
	case entered && left:
		return "PORT Node PORT"
	case entered:
		return "PORT Node"
	default:
		return "Node PORT"
	}
}
