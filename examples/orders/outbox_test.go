package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/outbox"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// binary finds a program of PostgreSQL, which Debian keeps out of the PATH.
func binary(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no %s: install PostgreSQL", name)
	}
	return found[len(found)-1]
}

// postgres starts a server with a fresh database. PostgreSQL refuses to run as root, so then it runs as nobody.
func postgres(t *testing.T) *sql.DB {
	t.Helper()
	dir, err := os.MkdirTemp("", "orders-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		var uid, gid uint32
		_, _ = fmt.Sscan(u.Uid+" "+u.Gid, &uid, &gid)
		attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(binary(t, name), args...)
		c.Dir, c.SysProcAttr = dir, attributes
		return c
	}
	if said, err := command("initdb", "-D", dir+"/data", "-U", "weir", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, said)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, tcp, _ := strings.Cut(l.Addr().String(), ":")
	_ = l.Close()
	server := command("postgres", "-D", dir+"/data", "-p", tcp, "-k", dir, "-h", "127.0.0.1", "-F")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	db, err := sql.Open("pgx", "postgres://weir@127.0.0.1:"+tcp+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	until(t, "PostgreSQL answers", func() bool { return db.PingContext(t.Context()) == nil })
	return db
}

// sink starts a job that reads nothing, and returns it with what it has got.
func sink(t *testing.T) (*client.Client, func() []job.Message) {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := client.New(store)
	h, err := client.Start(t.Context(), shop(), job.Alias("shop"), job.EnginesLater())
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.Child(t.Context(), "validate")
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []job.Message {
		all, err := v.Messages(t.Context(), port.Input, "in", 10_000)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// Rows that were committed become messages once, rows that were rolled back do not, while relays die at any moment.
func TestOutbox(t *testing.T) {
	t.Parallel()
	db := postgres(t)
	client, got := sink(t)
	for _, statement := range []string{outbox.Schema, outbox.Schema, `CREATE TABLE orders (id INT PRIMARY KEY)`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const n = 300
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(40*time.Millisecond)) // then it dies
				_, _ = (&outbox.Relay{DB: db, Client: client, Batch: 7}).Once(ctx)
				cancel()
			}
		})
	}
	committed := 0
	for i := range n {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tx.ExecContext(t.Context(), `INSERT INTO orders VALUES ($1)`, i); err == nil {
			err = outbox.Put(t.Context(), tx, "shop", "orders", orderOf(i))
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			err = tx.Rollback()
		} else {
			err, committed = tx.Commit(), committed+1
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	all.Wait()
	rest := &outbox.Relay{DB: db, Client: client}
	until(t, "the outbox is empty", func() bool {
		if _, err := rest.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM weir_outbox`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	seen := map[string]bool{}
	for _, m := range got() {
		if seen[string(m.Data)] {
			t.Errorf("twice: %s", m.Data)
		}
		seen[string(m.Data)] = true
	}
	if len(seen) != committed {
		t.Errorf("%d messages of %d rows", len(seen), committed)
	}
	refusals(t, db, client, rest)
}

// refusals: what cannot be written stays, and keeps no other; what was tried too long ago is not tried again.
func refusals(t *testing.T, db *sql.DB, client *client.Client, r *outbox.Relay) {
	t.Helper()
	for _, name := range []string{"nobody", "shop", "shop"} {
		if err := outbox.Put(t.Context(), db, name, "orders", orderOf(1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE weir_outbox SET tried = now() - interval '2 hours' WHERE id = (SELECT max(id) FROM weir_outbox)`); err != nil {
		t.Fatal(err)
	}
	n, err := r.Once(t.Context())
	if n != 1 || !errors.Is(err, job.ErrNotFound) || !errors.Is(err, outbox.ErrDoubtful) {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := client.Start(t.Context(), shop(), job.Alias("nobody"), job.EnginesLater()); err != nil {
		t.Fatal(err)
	}
	if n, err = r.Once(t.Context()); n != 1 || !errors.Is(err, outbox.ErrDoubtful) || errors.Is(err, job.ErrNotFound) {
		t.Errorf("%d rows, %v", n, err)
	}
}
