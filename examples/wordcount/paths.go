package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkPaths makes the arguments absolute. It refuses what can be seen to be wrong
// before anything is started; in a directory it looks no further than the first file.
func checkPaths(args []string) ([]Path, error) {
	var paths []Path
	any := false
	for _, arg := range args {
		if arg == "" {
			return nil, usagef("a PATH is empty; name a file or a directory")
		}
		abs, err := filepath.Abs(arg)
		if err != nil {
			return nil, usageError{err}
		}
		some, err := checkPath(abs)
		if err != nil {
			return nil, usageError{err}
		}
		any = any || some
		paths = append(paths, Path(abs))
	}
	if !any {
		return nil, usagef("no files to count in %s; name files, or directories that hold some", someOf(paths))
	}
	return paths, nil
}

// checkPath tells whether there is a file to count.
func checkPath(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return false, usagef("%s is a link to nowhere; check where it points", Path(path))
		}
		return false, usagef("%s does not exist; check the path", Path(path))
	}
	if err != nil {
		return false, cannotRead(path, err)
	}
	switch {
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return false, cannotRead(path, err)
		}
		return true, f.Close()
	case !info.IsDir():
		return false, usagef("%s is a %s; name a file or a directory", Path(path), kindOf(info.Mode()))
	}
	for _, err := range walk(path, "") {
		return err == nil, err
	}
	return false, nil
}

// kindOf names what is neither a regular file nor a directory.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return strings.TrimLeft(mode.Type().String(), "-")
	}
}
