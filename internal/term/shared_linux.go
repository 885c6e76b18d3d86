package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// kcmpFile asks kcmp whether two descriptors are of one open file.
const kcmpFile = 0

// inherited tells whether the open file of a descriptor of this process is also one of its other standard streams, or a standard stream
// of its parent: the process did not open it itself then.
func inherited(fd int) bool {
	self, parent := os.Getpid(), os.Getppid()
	for std := range 3 {
		if std != fd && sameFile(self, fd, self, std) || sameFile(self, fd, parent, std) {
			return true
		}
	}
	return false
}

// sameFile tells whether two descriptors are of one open file; it is false where the kernel does not say.
func sameFile(pid, fd, otherPID, other int) bool {
	differ, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(otherPID), kcmpFile, uintptr(fd), uintptr(other), 0) //nolint:gosec // descriptors and IDs of processes are small numbers
	return err == 0 && differ == 0
}
