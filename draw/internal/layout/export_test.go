package layout

// Shortest is shortest, with arcs of a beginning, an end and a weight each.
func Shortest(n int, arcs [][3]int, order []int) []int {
	all := make([]arc, len(arcs))
	for i, a := range arcs {
		all[i] = arc{a[0], a[1], a[2]}
	}
	return shortest(n, all, order)
}
