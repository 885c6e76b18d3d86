// Package sandbox starts programs that may do little: on Linux with namespaces, a user of their own, landlock and limits of resources, as
// far as the machine can. The program that links it starts itself again, as a helper that takes away what the program is not to have and
// becomes it.
package sandbox

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Limits are what a program may use.
type Limits struct {
	Memory    int64    // bytes
	Disk      int64    // bytes below its directory, and of one file
	Processes int      // with threads
	Network   bool     // it may use the network
	Read      []string // files and directories that it may read, besides those of the system
}

// Command is a program to start.
type Command struct {
	Argv   []string // the program and its arguments; with Loop what a script is added to
	Loop   bool     // the helper stays, and starts Argv with a script again and again: see Serve
	Env    []string
	Dir    string // its directory, which is empty, its own and writable
	User   int    // the user that it is to be; 0: as who starts it
	Limits Limits
}

// Process is a program that was started.
type Process struct {
	*exec.Cmd
	Stdin   *os.File // to write to
	Stdout  *os.File // what it prints on standard output
	Stderr  *os.File // … on standard error
	Results *os.File // what it writes to file descriptor 3
}

// Start starts a program. The caller must call Kill and Wait, and Close.
func Start(c Command, a Abilities) (p *Process, err error) {
	cmd, err := command(c, a)
	if err != nil {
		return nil, err
	}
	p = &Process{Cmd: cmd}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			p.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	in, toIn := pipe()
	fromOut, out := pipe()
	fromErr, errs := pipe()
	fromResults, results := pipe()
	theirs, p.Stdin, p.Stdout, p.Stderr, p.Results = []*os.File{in, out, errs, results}, toIn, fromOut, fromErr, fromResults
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, out, errs, []*os.File{results}
	return p, cmd.Start()
}

// Close closes this side of the pipes. A program that reads to the end of its input ends then.
func (p *Process) Close() {
	for _, f := range []*os.File{p.Stdin, p.Stdout, p.Stderr, p.Results} {
		_ = f.Close() // a nil file gives an error, too
	}
}

// Abilities are what the machine, and who runs the program, can do.
type Abilities struct {
	Namespaces bool // processes, network and mounts of its own
	UserSpace  bool // … by a user namespace
	Root       bool // it can become another user
	Processes  bool // their number can be limited
	Landlock   int  // the version that the kernel has; 0: none
	Limits     bool // of resources
}

// Missing says what the machine cannot do, in a line each.
func (a Abilities) Missing() (lines []string) {
	if !a.Limits {
		return []string{"this system has no sandbox for handlers: they run with all the rights of this process"}
	}
	if !a.Namespaces {
		lines = append(lines, "no namespaces for processes, network and mounts (not root, and user namespaces are not allowed): a handler's background processes are killed by their group only, it sees other processes, and how much it writes is limited by file only")
	}
	if !a.Root && !a.UserSpace {
		lines = append(lines, "no user of its own (root needs CAP_SETUID and CAP_SETGID for that): a handler runs as the user of this process")
	}
	if !a.Processes {
		lines = append(lines, "no limit of processes: it is for users of their own, and Linux does not hold root to it")
	}
	if a.Landlock == 0 {
		lines = append(lines, "no landlock: a handler can read what its user can")
	}
	if !a.Namespaces && a.Landlock < 4 {
		lines = append(lines, "no way to keep handlers from the network")
	}
	return lines
}

// String is what there is.
func (a Abilities) String() string {
	var has []string
	if a.Namespaces {
		has = append(has, "namespaces")
	}
	switch {
	case a.Root:
		has = append(has, "users of their own")
	case a.UserSpace:
		has = append(has, "user namespaces")
	}
	if a.Landlock > 0 {
		has = append(has, "landlock "+strconv.Itoa(a.Landlock))
	}
	if a.Limits {
		has = append(has, "limits of resources")
	}
	if len(has) == 0 {
		return "nothing"
	}
	return strings.Join(has, ", ")
}
