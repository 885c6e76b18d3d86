package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
)

const postgresStart = 30 * time.Second

// postgres is a PostgreSQL cluster of the benchmark's own, as it is without configuration:
// each commit is on disk before it is answered.
type postgres struct {
	cmd *exec.Cmd
	dir string
	url string
}

// postgresTool finds a program of PostgreSQL; Debian keeps them off PATH.
func postgresTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is right
	if len(found) == 0 {
		return "", fmt.Errorf("there is no %s here (Debian: apt-get install postgresql)", name)
	}
	return found[len(found)-1], nil
}

// unprivileged makes a command run as somebody else than root, whom PostgreSQL refuses, and
// gives a folder to that user.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root, and the user postgres is missing: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(dir, int(uid), int(gid))
}

// startPostgres makes a cluster and runs it on a free port of 127.0.0.1.
func startPostgres(ctx context.Context) (*postgres, error) {
	initdb, err := postgresTool("initdb")
	if err != nil {
		return nil, err
	}
	server, err := postgresTool("postgres")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-bench-postgres-")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir}
	create := exec.CommandContext(ctx, initdb, "-D", "data", "-U", "bench", "-A", "trust")
	if err = unprivileged(create, dir); err == nil {
		err = lab.RunQuiet(create)
	}
	if err == nil {
		err = p.run(ctx, server)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *postgres) run(ctx context.Context, server string) error {
	port := strconv.Itoa(10000 + rand.IntN(22000))
	p.url = "postgres://bench@127.0.0.1:" + port + "/postgres?sslmode=disable"
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(server, "-D", "data", "-h", "127.0.0.1", "-p", port, "-k", "")
	cmd.Stdout, cmd.Stderr = log, log
	if err := unprivileged(cmd, p.dir); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	ctx, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	ready, err := postgresTool("pg_isready")
	if err != nil {
		return err
	}
	return lab.Until(ctx, func(ctx context.Context) error {
		return lab.RunQuiet(exec.CommandContext(ctx, ready, "-h", "127.0.0.1", "-p", port))
	})
}

// stop ends the server and removes the cluster.
func (p *postgres) stop() error {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGINT) // clients are cut off, children end
		_ = p.cmd.Wait()                         // interrupted on purpose: the status says nothing
	}
	return os.RemoveAll(p.dir)
}
