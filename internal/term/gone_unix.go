//go:build unix

package term

import (
	"io"

	"golang.org/x/sys/unix"
)

// Gone tells whether nobody reads any more what is written to w, where that can be known
// without writing: of pipes, sockets and terminals.
func Gone(w io.Writer) bool {
	return asked(w, func(fd int) bool {
		poll := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor is a small number
		n, err := unix.Poll(poll, 0)
		return err == nil && n > 0 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
}

// asked asks for something of the descriptor of w; of what has none it is false.
func asked(w io.Writer, what func(fd int) bool) (yes bool) {
	f := File(w)
	if f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { yes = what(int(fd)) }) //nolint:gosec // a descriptor is a small number
	return yes
}
