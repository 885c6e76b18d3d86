package job

import (
	"fmt"

	"github.com/weirworks/weir/port"
)

// CheckPorts returns an error that wraps ErrPort if one of the ports is wrong, or two of one direction have one name.
func CheckPorts(ports []port.Spec) error {
	type end struct {
		dir  port.Dir
		name string
	}
	seen := make(map[end]bool, len(ports))
	for _, s := range ports {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrPort, err)
		}
		if seen[end{s.Dir, s.Name}] {
			return fmt.Errorf("%w: the %s port %q is given twice: give it once, with all its options", ErrPort, s.Dir, s.Name)
		}
		seen[end{s.Dir, s.Name}] = true
	}
	return nil
}
