package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
)

// The types of resources under /jobs.
const (
	cozyJobs      = "io.cozy.jobs"
	cozyLaunchers = "io.cozy.launchers"
)

// CozyResource is a job or a launcher as JSON:API has it.
type CozyResource[A any] struct {
	Type       string    `json:"type"`
	ID         job.ID    `json:"id"`
	Rev        string    `json:"rev" doc:"another one whenever the resource has changed"`
	Attributes A         `json:"attributes"`
	Links      CozyLinks `json:"links"`
}

// CozyLinks lead to a resource, or to the next page of a list.
type CozyLinks struct {
	Self string `json:"self,omitempty"`
	Next string `json:"next,omitempty" doc:"the next page; missing if this is the last one"`
}

// CozyOne is the document with one resource.
type CozyOne[A any] struct {
	Data CozyResource[A] `json:"data"`
}

// ContentType implements huma.ContentTypeFilter.
func (CozyOne[A]) ContentType(string) string { return apiType }

// CozyMany is the document with a page of them.
type CozyMany[A any] struct {
	Links CozyLinks         `json:"links"`
	Data  []CozyResource[A] `json:"data"`
}

// ContentType implements huma.ContentTypeFilter.
func (CozyMany[A]) ContentType(string) string { return apiType }

// CozyOptions are what a job was asked for with.
type CozyOptions struct {
	Priority      int             `json:"priority" doc:"1 to 100"`
	Timeout       *float64        `json:"timeout,omitempty" doc:"of an execution, in seconds"`
	RetryMaxCount int             `json:"retry_max_count,omitempty" doc:"how often it is executed at most"`
	MaxExecCount  int             `json:"max_exec_count,omitempty" doc:"the same"`
	RetryDelay    *float64        `json:"retry_delay,omitempty" doc:"seconds between two executions"`
	Arguments     json.RawMessage `json:"arguments" doc:"the message that the worker gets; of a launcher null, if it is not the same each time; of a job, if it is larger than 64 KiB and came with an event or a webhook"`
}

// cozyOptionsOf are the options of a job; one of which the type says what a job does has none.
func cozyOptionsOf(priority *int, o job.RunOptions, arguments json.RawMessage) CozyOptions {
	own := job.DefaultPriority
	if priority != nil {
		own = *priority
	}
	out := CozyOptions{Priority: max(1, (own+cozyPriority/2)/cozyPriority), RetryMaxCount: o.Tries, MaxExecCount: o.Tries, Arguments: arguments}
	if o.Timeout > 0 {
		out.Timeout = new(o.Timeout.Seconds())
	}
	if o.Backoff > 0 {
		out.RetryDelay = new(o.Backoff.Seconds())
		if o.Backoff == cozyNoTime {
			out.RetryDelay = new(0.0)
		}
	}
	return out
}

// revOf counts changes, as far as that can be told, and tells different ones apart.
func revOf(count int64, attributes any) (string, error) {
	raw, err := json.Marshal(attributes)
	sum := sha256.Sum256(raw)
	return strconv.FormatInt(count+1, 10) + "-" + hex.EncodeToString(sum[:8]), err
}

// cozyMemo is what is kept with jobs and launchers that are made under /jobs.
type cozyMemo struct {
	Launcher  string          `json:"launcher,omitempty"`  // of a job: the type of its launcher
	Arguments json.RawMessage `json:"arguments,omitempty"` // of a job
	Type      string          `json:"type,omitempty"`      // of a launcher
	When      string          `json:"when,omitempty"`      // its arguments
	Schedule  string          `json:"schedule,omitempty"`  // that they became
}

// raw is the memo as it is kept.
func (m cozyMemo) raw() json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil // of JSON and strings: that does not happen
	}
	return raw
}

// cozyMemoOf is the memo of a job; empty if it has none, or another one.
func cozyMemoOf(info *job.Info) (m cozyMemo) {
	_ = json.Unmarshal(info.Memo, &m)
	return m
}

// CozyPath is the path of a job or launcher under /jobs.
type CozyPath struct {
	Job string `path:"job" doc:"its ID"`
}

// CozyWorker is the path with the name of a worker.
type CozyWorker struct {
	Worker string `path:"worker" doc:"a type that an engine or a client has registered: GET /v1/types"`
}

// CozyPage says which page of a list is wanted.
type CozyPage struct {
	Cursor string `query:"page[cursor]" doc:"what links.next has"`
	Size   string `query:"page[limit]" doc:"how many there are on a page: 1 to 50; 50 for any other number"`
	Limit  string `query:"Limit" doc:"another name for page[limit]"`
}

// cozyPageSize is how many there are on a page at most.
const cozyPageSize = 50

// cozyList returns a page of the root jobs that pass a filter and are to be kept, and the links of the page.
func (s *session) cozyList(ctx context.Context, path string, p CozyPage, f job.Filter, keep func(*job.Info) bool) (list []*job.Info, links CozyLinks, err error) {
	size := cozyPageSize
	if text := cmp.Or(p.Size, p.Limit); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			name := map[bool]string{true: "query.page[limit]", false: "query.Limit"}[p.Size != ""]
			return nil, links, cozyRefusal(Kind{"usage", http.StatusBadRequest, 2}, name, "%.40q is not a number: use 1 to %d", text, cozyPageSize)
		}
		if n >= 1 && n <= cozyPageSize {
			size = n
		}
	}
	f.Order = job.Oldest
	if p.Cursor != "" {
		if f.After, err = job.ParseID(p.Cursor); err != nil {
			return nil, links, cozyRefusal(Kind{"usage", http.StatusBadRequest, 2}, "query.page[cursor]", "%.80q is not a cursor: use what links.next has", p.Cursor)
		}
	}
	for i, err := range s.client.Jobs(ctx, f) {
		if err != nil {
			return nil, links, err
		}
		if !keep(i) {
			continue
		}
		if len(list) == size {
			links.Next = fmt.Sprintf("%s?page[cursor]=%s", path, list[size-1].ID)
			if size != cozyPageSize {
				links.Next += fmt.Sprintf("&page[limit]=%d", size)
			}
			break
		}
		list = append(list, i)
	}
	return list, links, nil
}

// cozyFind returns the root job with just this ID, if it passes.
func (s *session) cozyFind(ctx context.Context, id, what string, pass func(*job.Info) bool) (*client.Handle, *job.Info, error) {
	none := problem(Kind{"not_found", http.StatusNotFound, 3}, "there is no %s with the ID %.80q, or not any more", what, id)
	root, err := job.ParseID(id)
	if err != nil || !root.IsRoot() {
		return nil, nil, none
	}
	h := s.client.At(root)
	info, err := h.Info(ctx)
	if errors.Is(err, job.ErrNotFound) || err == nil && !pass(info) {
		return nil, nil, none
	}
	return h, info, err
}

// cozyType returns what is known of a worker: of one that several queues have, that of the default queue, or of the first.
func (s *session) cozyType(ctx context.Context, worker string) (*job.TypeInfo, error) {
	if worker == trigger.Type || slices.Contains(s.cfg.Reserved, worker) {
		return nil, problem(Kind{"forbidden", http.StatusForbidden, 8}, "worker %.80q is reserved: its jobs are not made here", worker)
	}
	all, err := s.client.Types(ctx)
	if err != nil {
		return nil, err
	}
	var found *job.TypeInfo
	var names []string
	for i := range all {
		if all[i].Type == worker && (found == nil || all[i].Queue == job.DefaultQueue) {
			found = &all[i]
		}
		names = append(names, all[i].Type)
	}
	if found == nil {
		slices.Sort(names)
		return nil, problem(Kind{"not_found", http.StatusNotFound, 3}, "there is no worker %.80q: %s", worker, port.Suggest(worker, slices.Compact(names)))
	}
	return found, nil
}

// cozyPort is the In port that a job's message goes to: in, if there is such a port, else the first; empty: there is none.
func cozyPort(t *job.TypeInfo) (in string) {
	for _, p := range t.Ports {
		if p.Dir == port.Input && p.Name != port.Any && (in == "" || p.Name == "in") {
			in = p.Name
		}
	}
	return in
}

// cozyMessage returns that port, and the message that a job's arguments are. Arguments that it does not take are refused.
func cozyMessage(t *job.TypeInfo, w *cozyWish) (in string, message json.RawMessage, err error) {
	in, message = cozyPort(t), w.arguments
	if message == nil {
		message, w.at = json.RawMessage(`{}`), wholeBody
	}
	if in == "" {
		if !w.empty() {
			return "", nil, cozyRefusal(kindUsage, w.at, "worker %s takes no arguments: it has no In port; leave them out", t.Type)
		}
		return "", nil, nil
	}
	if kind := t.Kinds[port.TypeKey(port.Input, in)]; kind != "" {
		if err := port.CheckKind(message, kind); err != nil {
			return "", nil, cozyRefusal(kindUsage, w.at, "arguments: %v: port %q of worker %s takes nothing else", err, in, t.Type)
		}
	}
	return in, message, nil
}
