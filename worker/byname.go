package worker

// few is how many ports are found as fast without a map, which costs more to make than most runs take.
const few = 8

// byName are ports of a run. Its zero value is empty.
type byName[P any] struct {
	all   []P
	names []string
	index map[string]P // of all, if they are more than few
}

// get returns the port of a name; a zero value if there is none.
func (b *byName[P]) get(name string) (p P) {
	if b.index != nil {
		return b.index[name]
	}
	for i, n := range b.names {
		if n == name {
			return b.all[i]
		}
	}
	return p
}

// add adds a port whose name is new.
func (b *byName[P]) add(name string, p P) {
	b.all, b.names = append(b.all, p), append(b.names, name)
	switch {
	case b.index != nil:
		b.index[name] = p
	case len(b.all) > few:
		b.index = make(map[string]P, 2*len(b.all))
		for i, n := range b.names {
			b.index[n] = b.all[i]
		}
	}
}
