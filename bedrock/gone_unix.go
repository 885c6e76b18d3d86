//go:build unix

package bedrock

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// Of a client that has ended its side of a connection it shows after what was written to it arrived whether it still reads: so long that is
// waited for.
const (
	afterEnd  = 10 * time.Millisecond
	mostLooks = 5
)

// gone tells whether what was written to a connection cannot have reached its client, as far as that can be known yet.
func gone(c net.Conn) bool {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	for range mostLooks {
		ended, broken := false, false
		err := raw.Control(func(fd uintptr) {
			n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			ended = n == 0 && err == nil
			broken = err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
			if state, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR); err != nil || state != 0 {
				broken = true // of one that it has ended, a read does not tell that
			}
		})
		if err != nil || broken {
			return true
		}
		if !ended {
			return false
		}
		time.Sleep(afterEnd)
	}
	return false // it reads on
}
