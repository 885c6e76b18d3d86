package workkit

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the IDs of WorkKit are SHA-1
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
)

// Entry is what a schedule holds of a job. Other fields that its JSON has are left as they are.
type Entry struct {
	// Args are what the job is given: a JSON array. Empty means [].
	Args json.RawMessage `json:"args"`
	// Cron says when it runs, in the dialect cron7. Empty: once.
	Cron string `json:"cron"`
	// Job names the type of the job to launch, see Type.
	Job string `json:"job"`
}

// Type is the registered type that the entry names: what stands behind #', with each of . / and - as _, so that
// #'some.ns/func-name is some_ns_func_name; a text without #' is the type itself. It is never evaluated.
func (e *Entry) Type() string {
	if name, ok := strings.CutPrefix(e.Job, "#'"); ok {
		return strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(name)
	}
	return e.Job
}

// Canonical is the JSON of the entry with its keys sorted and without blanks.
func (e *Entry) Canonical() ([]byte, error) {
	args := json.RawMessage("[]")
	if len(e.Args) > 0 {
		args = e.Args
	}
	if err := port.Check(args); err != nil {
		return nil, fmt.Errorf("%w of %s: args are not valid JSON: %w", job.ErrConfig, Label, err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(args), []byte("[")) {
		return nil, fmt.Errorf("%w of %s: args %.60s: use a JSON array, such as [1, 2]", job.ErrConfig, Label, e.Args)
	}
	raw, err := port.Canonical(map[string]any{"args": args, "cron": e.Cron, "job": e.Job})
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", job.ErrConfig, Label, err)
	}
	return raw, nil
}

// ID is the SHA-1 of the canonical JSON.
func (e *Entry) ID() (string, error) {
	raw, err := e.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(raw) //nolint:gosec // as above
	return hex.EncodeToString(sum[:]), nil
}

// parse reads the JSON of an entry.
func parse(raw json.RawMessage) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("it is not a JSON object with the texts cron and job: %w", err)
	}
	if e.Job == "" {
		return nil, fmt.Errorf("it has no job: the name of a type")
	}
	args := bytes.TrimSpace(e.Args)
	switch {
	case len(args) == 0 || string(args) == "null":
		args = []byte("[]")
	case args[0] != '[':
		return nil, fmt.Errorf("args are not an array: %.60s", args)
	case len(args) > job.MaxLaunch/2:
		return nil, fmt.Errorf("%w: args have %d bytes, at most %d are allowed", job.ErrTooLarge, len(args), job.MaxLaunch/2)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, args); err != nil {
		return nil, err
	}
	e.Args = b.Bytes()
	return &e, port.Check(e.Args)
}

// after is when an entry runs next that is due at a time, of which now is the moment of asking; the zero time if never again. Times that have
// passed meanwhile are passed over.
func (e *Entry) after(due, now time.Time) (time.Time, error) {
	if e.Cron == "" {
		return time.Time{}, nil
	}
	s, err := schedule.Parse(schedule.Cron7, e.Cron, "", time.Unix(0, 0))
	if err != nil {
		return time.Time{}, err
	}
	next, _ := s.Next(schedule.Moments{Now: now, Scheduled: due})
	return next, nil
}

// member is what an entry is in the queue of a schedule.
func member(id string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]string{"id": id}) // a text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// idOf is the ID in a member, which may say more.
func idOf(member string) (string, error) {
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(member), &m); err != nil {
		return "", fmt.Errorf(`the member %.80q is not JSON such as {"id":"…"}: %w`, member, err)
	}
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if m.ID == "" || len(m.ID) > job.MaxLabelValue || strings.ContainsFunc(m.ID, bad) {
		return "", fmt.Errorf("the id %.80q of a member: use 1 to %d printable characters without blanks", m.ID, job.MaxLabelValue)
	}
	return m.ID, nil
}
