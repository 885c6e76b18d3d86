//go:build unix

package term

import (
	"io"
	"os"

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

// Closed tells whether w was closed when the program was started, as by >&-. Go opens /dev/null in its place, for reading, too; > /dev/null
// is for writing alone.
func Closed(w io.Writer) bool {
	return asked(w, func(fd int) bool {
		var here, null unix.Stat_t
		mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) //nolint:gosec // a descriptor is a small number
		if err != nil || mode&unix.O_ACCMODE != unix.O_RDWR || unix.Fstat(fd, &here) != nil || unix.Stat(os.DevNull, &null) != nil {
			return false
		}
		return here.Mode&unix.S_IFMT == unix.S_IFCHR && here.Rdev == null.Rdev
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
