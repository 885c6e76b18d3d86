//go:build unix

package runner

import (
	"os"
	"syscall"
)

// ours tells whether a file belongs to the user of this process.
func ours(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
