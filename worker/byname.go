package worker

// few is how many ports are found as fast without a map, which costs more to make than most runs take.
const few = 8

// byName are ports of a run. Its zero value is empty.
type byName[P interface{ called() string }] struct {
	all   []P
	index map[string]P // of all, if they are more than few
}

// get returns the port of a name; a zero value if there is none.
func (b *byName[P]) get(name string) (p P) {
	if b.index != nil {
		return b.index[name]
	}
	for _, one := range b.all {
		if one.called() == name {
			return one
		}
	}
	return p
}

// add adds a port whose name is new.
func (b *byName[P]) add(p P) {
	b.all = append(b.all, p)
	switch {
	case b.index != nil:
		b.index[p.called()] = p
	case len(b.all) > few:
		b.index = make(map[string]P, 2*len(b.all))
		for _, one := range b.all {
			b.index[one.called()] = one
		}
	}
}
