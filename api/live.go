package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/job"
)

// Reading a watched tree takes a fifth of the time, but it is read at least so often unless there are very many streams.
const (
	liveAtLeast = 10 * time.Second
	liveShare   = 5
)

// maxToggled is how many boxes one view may have folded or unfolded.
const maxToggled = 1000

// ViewInput says how a tree is drawn.
type ViewInput struct {
	Toggle  []string `query:"toggle,explode" maxItems:"1000" doc:"IDs of boxes that are drawn the other way than by default: a subgraph as one box, children that runs spawned as a box each"`
	Spawned int      `query:"spawned" default:"3" minimum:"1" maximum:"1000" doc:"more children of one type than this, which runs of one job spawned, are one box"`
}

func (v *ViewInput) view() (draw.View, string) {
	toggled := make(map[string]bool, len(v.Toggle))
	for _, path := range v.Toggle[:min(len(v.Toggle), maxToggled)] {
		toggled[path] = true
	}
	names := slices.Sorted(slices.Values(v.Toggle))
	return draw.View{Spawned: v.Spawned, Spawns: true, Toggled: toggled}, fmt.Sprint(v.Spawned, " ", strings.Join(names, "\n"))
}

// liveOperations are those on trees that are watched.
func (s *Server) liveOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/live", id: "watch-tree", group: groupGraphs, role: read, summary: "Follow the picture of a tree as server-sent events",
		about: "`snapshot` is the picture, in columns: places, statuses, and what waits and has passed on each wire. `change` has the values that are others now, by their index in the snapshot: absolute ones, so a client that was slow gets one event for several. After a change of the tree itself comes another snapshot. `trouble` says that the tree cannot be read at the moment, `deleted` that it is gone. All who watch one tree share what is read, of a large one only what has changed, and nothing is read while nobody does.",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		ViewInput
	},
	) (*huma.StreamResponse, error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		if _, err := h.Info(ctx); err != nil {
			return nil, err
		}
		view, key := in.view()
		return s.streaming(func(ctx context.Context, out *sse) {
			l := s.watched.join(&s.feeds, treeReader{store: s.store, id: h.ID()}, view, s.principal.Tenant+" "+string(h.ID())+" "+key)
			defer s.watched.leave(l)
			l.tell(ctx, out)
		}), nil
	})
}

// watched are the trees that are watched, by tenant, root and view.
type watched struct {
	mu  sync.Mutex
	all map[string]*live
}

// live is a watched tree. One goroutine reads it for all who watch.
type live struct {
	feeds *feeds
	key   string
	tree  treeReader // of the goroutine
	view  draw.View
	stop  context.CancelFunc
	users int // guarded by the mutex of watched

	mu      sync.Mutex
	picture *livePicture  // nil before the first reading
	changed chan struct{} // closed by the next reading that has something new
	trouble string
	gone    bool
	epoch   int64
	seq     int64
	frames  map[int64][]byte // events that were encoded since the last reading: the changes since a number, or as 0 the snapshot
}

func (w *watched) join(feeds *feeds, tree treeReader, view draw.View, key string) *live {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.all[key]
	if l == nil {
		l = &live{key: key, feeds: feeds, tree: tree, view: view, changed: make(chan struct{}), epoch: time.Now().UnixMilli(), frames: map[int64][]byte{}}
		if w.all == nil {
			w.all = map[string]*live{}
		}
		w.all[key] = l
		l.stop = feeds.start(l.follow)
	}
	l.users++
	return l
}

func (w *watched) leave(l *live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(w.all, l.key)
		l.stop()
	}
}

// follow reads the tree until nobody watches it, or it is gone.
func (l *live) follow(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		now, err := l.tree.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if l.read(now, err) {
			return
		}
		pause := l.feeds.pace(min((liveShare-1)*time.Since(began), liveAtLeast))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// read takes what was read, and tells whether the tree is gone.
func (l *live) read(now reading, err error) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = errors.Is(err, job.ErrNotFound) || err == nil && len(now.tree) == 0
	if l.gone {
		l.announce()
		return true
	}
	trouble := ""
	if err == nil {
		var fresh bool
		if l.picture == nil {
			l.picture = &livePicture{}
		}
		if fresh, err = l.picture.update(now, l.view, l.seq+1); fresh {
			l.epoch++
		}
	}
	if err != nil {
		trouble = err.Error()
	}
	if trouble != l.trouble || err == nil && l.picture.latest > l.seq {
		l.trouble = trouble
		l.seq++
		l.announce()
	}
	return false
}

// announce wakes all who watch.
func (l *live) announce() {
	clear(l.frames)
	close(l.changed)
	l.changed = make(chan struct{})
}

// seen is what a client has been sent.
type seen struct {
	epoch, seq int64
	trouble    string
}

// next is the next event for a client, or none, and what to wait for then: nil if no other one comes.
func (l *live) next(has *seen) (frame []byte, wait <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
		return frameOf("deleted", []byte("{}")), nil
	case l.trouble != "" && l.trouble != has.trouble:
		has.trouble = l.trouble
		raw, _ := json.Marshal(map[string]string{"detail": l.trouble})
		return frameOf("trouble", raw), l.changed
	case l.picture == nil || has.seq == l.seq || l.trouble != "":
		return nil, l.changed
	}
	has.trouble = ""
	since, fresh := has.seq, has.epoch != l.epoch
	if fresh {
		since = 0
	}
	*has = seen{epoch: l.epoch, seq: l.seq}
	frame = l.frames[since]
	if frame == nil { // the first client that needs it has it made for all
		if fresh {
			frame = frameOf("snapshot", l.picture.snapshot(l.epoch, l.seq))
		} else {
			frame = frameOf("change", l.picture.changes(l.epoch, l.seq, since))
		}
		l.frames[since] = frame
	}
	return frame, l.changed
}

// frameOf is an event as clients are sent it.
func frameOf(kind string, data []byte) []byte {
	return slices.Concat([]byte("event: "+kind+"\ndata: "), data, []byte("\n\n"))
}

// tell sends a client all events until it is gone, or its token has ended.
func (l *live) tell(ctx context.Context, out *sse) {
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	var has seen
	for ctx.Err() == nil {
		frame, wait := l.next(&has)
		if frame != nil {
			if out.write(ctx, frame, "") != nil || wait == nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-wait:
		case <-alive.C:
			if out.write(ctx, nil, "") != nil {
				return
			}
		}
	}
}
