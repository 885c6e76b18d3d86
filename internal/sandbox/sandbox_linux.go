package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// helper is the name by which the program knows that it is to be the helper.
const helper = "weir-sandbox"

// order is what the helper is told.
type order struct {
	Command
	Env       []string `json:"-"` // it has it
	Abilities Abilities
	Probe     bool
}

// A program that links this package is its own helper, so there is nothing to install.
func init() {
	if len(os.Args) == 2 && os.Args[0] == helper {
		err := help(os.Args[1])
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(126) //nolint:forbidigo // this process is the helper, of which the program that was linked is no part
	}
}

// command is the helper for a program.
func command(c Command, a Abilities) (*exec.Cmd, error) {
	text, err := json.Marshal(order{Command: c, Abilities: a})
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helper, string(text)}, Env: veiled(c.Env), SysProcAttr: attributes(a, c.Limits.Network)}
	return cmd, nil
}

func attributes(a Abilities, network bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !a.Namespaces {
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if !network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if a.UserSpace {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// Probe finds out what the machine can do, by trying it, the best first. It does so once.
var Probe = sync.OnceValue(func() Abilities {
	root := os.Geteuid() == 0
	tries := []Abilities{{Namespaces: true, UserSpace: true, Processes: !root}}
	if root { // and perhaps without all of its capabilities
		tries = []Abilities{{Namespaces: true, Root: true, Processes: true}, tries[0], {Root: true, Processes: true}, {Namespaces: true}}
	}
	for _, a := range tries {
		a.Limits, a.Landlock = true, landlockVersion()
		text, _ := json.Marshal(order{Command: Command{User: probeUser, Dir: os.TempDir(), Limits: Limits{Disk: 1 << 20}}, Abilities: a, Probe: true}) // it always can be
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helper, string(text)}, Env: []string{}, SysProcAttr: attributes(a, false)}
		if cmd.Run() == nil {
			return a
		}
	}
	return Abilities{Limits: true, Landlock: landlockVersion()}
})

// probeUser is one that nothing runs as.
const probeUser = 60_999

// probe tells whether a program could become another user, who owns its directory.
func (o *order) probe() error {
	if o.Abilities.Root {
		fd, err := unix.MemfdCreate(helper, unix.MFD_CLOEXEC)
		if err == nil {
			err = unix.Fchown(fd, o.User, o.User)
		}
		if err != nil {
			return err
		}
	}
	return o.become()
}

// landlockVersion asks the kernel.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// veil is in front of the names of variables until nothing can be harmed any more: the helper has rights that the program has not, and what loads
// it would obey LD_PRELOAD and the like.
const veil = "_"

func veiled(env []string) []string {
	hidden := make([]string, len(env))
	for i, v := range env {
		hidden[i] = veil + v
	}
	return hidden
}

// unveil gives variables their names.
func unveil() {
	env := os.Environ()
	os.Clearenv()
	for _, v := range env {
		if name, value, ok := strings.Cut(strings.TrimPrefix(v, veil), "="); ok {
			_ = os.Setenv(name, value) // it had a name like that before
		}
	}
}

// help takes away what the program is not to have, and becomes it. It returns only if that fails.
func help(text string) error {
	runtime.LockOSThread() // for what belongs to a thread
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	fresh, err := o.namespaces()
	if err != nil {
		return err
	}
	if o.Probe {
		if err := o.probe(); err != nil {
			return err
		}
		os.Exit(0) //nolint:forbidigo // as in init
	}
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	// The last step before the user changes, as then this program's own file may be out of reach.
	if err := o.restrict(fresh); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := o.limit(); err != nil {
		return err
	}
	if err := o.become(); err != nil {
		return err
	}
	unveil()
	if o.Loop {
		Serve(o.Argv, o.Abilities.Namespaces)
		os.Exit(0) //nolint:forbidigo // as in init
	}
	return fmt.Errorf("starting %s: %w", o.Argv[0], syscall.Exec(o.Argv[0], o.Argv, os.Environ()))
}

// namespaces makes those that it begins in its own: a directory of limited size, and processes that are its own. It tells whether /proc
// has no others.
func (o *order) namespaces() (fresh bool, err error) {
	if !o.Abilities.Namespaces {
		return false, nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return false, fmt.Errorf("mounts of its own: %w", err)
	}
	fresh = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") == nil
	owner := 0
	if o.Abilities.Root { // otherwise it is who is the root of its namespace
		owner = o.User
	}
	data := fmt.Sprintf("size=%d,mode=0700,uid=%d,gid=%d,nr_inodes=10000", o.Limits.Disk, owner, owner)
	if err := unix.Mount("tmpfs", o.Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fresh, fmt.Errorf("a directory of %d bytes: %w", o.Limits.Disk, err)
	}
	return fresh, nil
}

// What programs read that interpret scripts.
var (
	systemDirs  = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/python3", "/etc/python3.11"}
	systemFiles = []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/localtime", "/etc/host.conf", "/etc/services", "/etc/protocols", "/etc/gai.conf", "/dev/zero", "/dev/random", "/dev/urandom"}
)

// restrict leaves it files of the system to read, and its directory.
func (o *order) restrict(proc bool) error {
	if o.Abilities.Landlock == 0 {
		return nil
	}
	dirs := systemDirs
	if proc {
		dirs = append(dirs, "/proc")
	}
	rules := []landlock.Rule{
		landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(systemFiles...).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null").IgnoreIfMissing(), landlock.RWDirs(o.Dir),
	}
	for _, path := range o.Limits.Read {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			continue
		case info.IsDir():
			rules = append(rules, landlock.RODirs(path))
		default:
			rules = append(rules, landlock.ROFiles(path))
		}
	}
	if err := landlock.V5.BestEffort().RestrictPaths(rules...); err != nil {
		return err
	}
	if o.Limits.Network {
		return nil
	}
	return landlock.V5.BestEffort().RestrictNet()
}

// limit sets the limits of resources. Memory is what it may write to: programs reserve much more address space than they use.
func (o *order) limit() error {
	for _, l := range []struct {
		what  int
		most  int64
		named string
	}{
		{unix.RLIMIT_CORE, 0, "core"},
		{unix.RLIMIT_NOFILE, 256, "open files"},
		{unix.RLIMIT_FSIZE, o.Limits.Disk, "file size"},
		{unix.RLIMIT_DATA, o.Limits.Memory, "memory"},
		{unix.RLIMIT_NPROC, int64(o.Limits.Processes), "processes"},
	} {
		if l.what == unix.RLIMIT_NPROC && !o.Abilities.Processes {
			continue // all that the user runs would count, and nothing could start
		}
		v := uint64(l.most) //nolint:gosec // limits are not negative
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err == nil && now.Max < v {
			v = now.Max // who is not root cannot raise it
		}
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limit of %s: %w", l.named, err)
		}
	}
	return nil
}

// become makes it another user, without rights.
func (o *order) become() error {
	if o.User > 0 && o.Abilities.Root {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(o.User, o.User, o.User), syscall.Setresuid(o.User, o.User, o.User)); err != nil {
			return fmt.Errorf("becoming user %d: %w", o.User, err)
		}
	}
	if o.Abilities.UserSpace {
		for right := uintptr(0); right <= unix.CAP_LAST_CAP; right++ {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0) // a kernel that does not know one has it not
		}
	}
	// A change of user forgets it. What runs here dies with who started it.
	return errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0))
}

// Kill ends the program and all that it started.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // its group
	_ = p.Process.Kill()                              // the first of its namespace, with which all others end
}

// killRest ends all other processes of a namespace of processes, whose first this is.
func killRest() {
	_ = syscall.Kill(-1, syscall.SIGKILL)
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
