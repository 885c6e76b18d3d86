//go:build unix && !linux

package term

// inherited tells whether the process did not open the file of a descriptor itself, where that can be known.
func inherited(int) bool { return false }
