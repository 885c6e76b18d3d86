package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ErrOther is returned by Bind if payloads of the journal are for another namespace, or for that of another Redis.
var ErrOther = errors.New("the journal has payloads of another Redis")

// home is the namespace that the payloads of a journal become jobs of.
type home struct {
	mu sync.Mutex
	// The ID of the namespace, empty while none of the payloads has gone anywhere, and where its Redis is.
	id, where string
}

// homePath is the file that tells where payloads went.
func (j *Journal) homePath() string { return filepath.Join(j.cfg.Dir, "namespace") }

// openHome reads where payloads of earlier processes went. If none of them is left, those to come may go anywhere.
func (j *Journal) openHome() error {
	raw, err := os.ReadFile(j.homePath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(raw) == 0 {
		if err := writeSynced(j.homePath(), ""); err != nil {
			return err
		}
	}
	if !j.reader.left() {
		return nil
	}
	j.home.id, j.home.where, _ = strings.Cut(strings.TrimSpace(string(raw)), " ")
	return nil
}

// homeSize is how long the file is, whatever is in it: room for it is there also when the disk is full.
const homeSize = 512

// Bind tells to which namespace the payloads go: the ID is one that it has on one Redis alone, such as redisstore.Store.NamespaceID, and where is the address of that. It must be
// called before payloads are stored, and notes both on the disk. The error wraps ErrOther while payloads of the journal may have gone to another namespace elsewhere: those would
// become jobs twice, or jobs of somebody else. Another ID at the same address is that of a Redis that lost its data.
func (j *Journal) Bind(id, where string) error {
	h := &j.home
	h.mu.Lock()
	defer h.mu.Unlock()
	where = strings.TrimSpace(where[:min(len(where), homeSize-1-len(id)-1)]) // as much as the file holds
	switch {
	case h.id == id:
		return nil
	case h.id != "" && h.where != where:
		return fmt.Errorf("%w: payloads in %s are for the one at %s, where the namespace has ID %s, and at %s it has ID %s: use the first; if it is gone for good, stop the server and remove %s: what is left then goes to the second",
			ErrOther, j.cfg.Dir, h.where, h.id, where, id, j.homePath())
	case h.id != "":
		j.log.Error("Redis has lost its data since payloads of the journal were moved there, or is another one at the same address: jobs that it had are lost", "redis", where)
	}
	if err := writeSynced(j.homePath(), id+" "+where); err != nil {
		return fmt.Errorf("noting where the payloads of a journal go: %w", err)
	}
	h.id, h.where = id, where
	return nil
}

// bound tells whether payloads may have gone somewhere.
func (j *Journal) bound() bool {
	j.home.mu.Lock()
	defer j.home.mu.Unlock()
	return j.home.id != ""
}

// writeSynced writes a line over what is in the file, whose size stays.
func writeSynced(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%-*.*s\n", homeSize-1, homeSize-1, line)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
