package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// firstUser to firstUser+mostUsers are the users that processes become.
const firstUser, mostUsers = 61_000, 4_000

// User is one that no other process of a sandbox on this machine is, until it is closed: what a user may have of processes is counted over
// all that are this user.
type User struct {
	io.Closer
	ID int
}

// TakeUser takes a user. What locks it is the name of a socket that nobody connects to: it needs no file and ends with this process, however
// that ends. Linux only; containers with networks of their own do not see each other's names.
func TakeUser() (User, error) {
	for id := firstUser; id < firstUser+mostUsers; id++ {
		name, err := new(net.ListenConfig).Listen(context.Background(), "unix", fmt.Sprintf("@weir-handler-user-%d", id))
		if err == nil {
			return User{Closer: name, ID: id}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return User{}, fmt.Errorf("a user of its own: %w", err)
		}
	}
	return User{}, fmt.Errorf("a user of its own: all %d, from %d on, are taken", mostUsers, firstUser)
}
