//go:build unix

package term

import (
	"io"

	"golang.org/x/sys/unix"
)

// Gone tells whether nobody reads any more what is written to w, where that can be known
// without writing: of pipes, sockets and terminals.
func Gone(w io.Writer) bool {
	f := File(w)
	if f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor is a small number
		n, err := unix.Poll(poll, 0)
		gone = err == nil && n > 0 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}
