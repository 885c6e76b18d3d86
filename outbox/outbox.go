// Package outbox is a transactional outbox: rows that a program commits with its own data in a PostgreSQL database become messages of
// jobs, each exactly once. Put inserts a row in the program's transaction; a Relay, in any process, carries the rows over.
//
//	tx, _ := db.BeginTx(ctx, nil)
//	_, _ = tx.ExecContext(ctx, `INSERT INTO orders …`)
//	_ = outbox.Put(ctx, tx, "shop", "orders", order)
//	_ = tx.Commit() // both, or none
//
// It uses database/sql alone: the driver is the program's.
package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Schema makes the table. It may be executed again and again.
const Schema = `CREATE TABLE IF NOT EXISTS weir_outbox (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	job TEXT NOT NULL,
	port TEXT NOT NULL,
	message TEXT NOT NULL,
	tried TIMESTAMPTZ
)`

// Execer is a *sql.Tx, or anything else that executes statements.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Put inserts a row in a transaction of the caller: a message for an In port of a job, which is named as in client.Client.Find.
func Put(ctx context.Context, tx Execer, jobName, in string, message any) error {
	raw, err := json.Marshal(message)
	if err == nil {
		err = job.CheckSize("the message", len(raw))
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO weir_outbox (job, port, message) VALUES ($1, $2, $3)`, jobName, in, string(raw))
	}
	if err != nil {
		return fmt.Errorf("putting a message for port %q of job %s into the outbox: %w", in, jobName, err)
	}
	return nil
}

// Relay carries rows over. Several may do so at a time.
type Relay struct {
	// DB is the database with the table. Required; it is not closed.
	DB *sql.DB
	// Client writes the messages. Required.
	Client *client.Client
	// Every is how often Run looks for rows while there are none. Zero means a second.
	Every time.Duration
	// Batch is how many rows are carried over at a time. Zero means 100.
	Batch int
	// Failed is told what went wrong, by Run. Nil means nobody is.
	Failed func(error)
}

const (
	// sure is for how long after the first try it is certain whether a message was written: Weir knows its key for longer.
	sure = job.OnceFor - 10*time.Minute
	// soon is how long one round may take.
	soon = 5 * time.Minute
)

// ErrDoubtful is about a row that was tried long ago, by a relay that died: whether its message was written cannot be told any more. The row
// stays. Look at the job, and then delete the row, or set tried to NULL to have it written.
var ErrDoubtful = errors.New("the message was tried too long ago to tell whether it was written")

// Run carries rows over until ctx ends. What fails is tried again.
func (r *Relay) Run(ctx context.Context) error {
	every := r.Every
	if every <= 0 {
		every = time.Second
	}
	for {
		n, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil && r.Failed != nil {
			r.Failed(err)
		}
		if n > 0 && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// row is a row of the table.
type row struct {
	id                 int64
	job, port, message string
	doubtful           bool
}

// Once carries some rows over, in their order, and returns how many. A row that cannot be carried over does not keep the others; the
// error tells of it.
func (r *Relay) Once(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	rows, err := r.claim(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the outbox: %w", err)
	}
	var errs []error
	found := map[string]*client.Handle{}
	for _, one := range rows {
		err := r.write(ctx, one, found)
		if err == nil {
			_, err = r.DB.ExecContext(ctx, `DELETE FROM weir_outbox WHERE id = $1`, one.id)
			n++
		} else if refused(err) { // it was certainly not written
			_, failed := r.DB.ExecContext(ctx, `UPDATE weir_outbox SET tried = NULL WHERE id = $1`, one.id)
			err = errors.Join(err, failed)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("row %d of the outbox, for port %q of job %s: %w", one.id, one.port, one.job, err))
		}
	}
	return n, errors.Join(errs...)
}

// claim marks the first rows as tried, before they are, and returns them. Two relays may get the same: they use the same keys.
func (r *Relay) claim(ctx context.Context) (all []row, err error) {
	batch := r.Batch
	if batch <= 0 {
		batch = 100
	}
	rows, err := r.DB.QueryContext(ctx, `WITH oldest AS (SELECT id FROM weir_outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
	claimed AS (UPDATE weir_outbox o SET tried = COALESCE(o.tried, now()) FROM oldest WHERE o.id = oldest.id
		RETURNING o.id, o.job, o.port, o.message, o.tried < now() - make_interval(secs => $2) AS doubtful)
SELECT id, job, port, message, doubtful FROM claimed ORDER BY id`, batch, sure.Seconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one row
		if err := rows.Scan(&one.id, &one.job, &one.port, &one.message, &one.doubtful); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// write writes a row's message, under a key of the row: once, however often it is tried.
func (r *Relay) write(ctx context.Context, one row, found map[string]*client.Handle) (err error) {
	if one.doubtful {
		return ErrDoubtful
	}
	h := found[one.job]
	if h == nil {
		if h, err = r.Client.Find(ctx, one.job); err != nil {
			return err
		}
		found[one.job] = h
	}
	return h.WriteOnce(ctx, fmt.Sprintf("outbox-%d", one.id), one.port, json.RawMessage(one.message))
}

// refused tells whether an error says that nothing was written.
func refused(err error) bool {
	for _, kind := range []error{job.ErrNotFound, job.ErrAmbiguous, job.ErrPort, job.ErrFull, job.ErrTooLarge, job.ErrName, port.ErrEncoding} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
