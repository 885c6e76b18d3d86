package api

import (
	"context"
	"time"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Route is one operation.
type Route struct {
	Method, Path string
	Role         Role
}

// Routes are all operations of a server.
func (s *Server) Routes() (all []Route) {
	for _, r := range s.routes {
		all = append(all, Route{r.method, r.path, r.role})
	}
	return all
}

// Allowed tells whether a role may do what another one is asked for.
func Allowed(has, needs Role) bool { return allowed(has, needs) }

// Watched is how many trees are read for those who watch them.
func (s *Server) Watched() int {
	s.watched.mu.Lock()
	defer s.watched.mu.Unlock()
	return len(s.watched.all)
}

// Followed is how many logs are read for those who follow them.
func (s *Server) Followed() int {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	return len(s.feeds.logs)
}

// TreeReader reads a tree as the server does for those who watch it: its jobs, when all of it was read last, and its picture.
func TreeReader(store *redisstore.Store, id job.ID, view draw.View) func(context.Context) (tree []*job.Info, whole time.Time, picture string, err error) {
	r, l, n := treeReader{store: store, id: id}, livePicture{}, int64(0)
	return func(ctx context.Context) ([]*job.Info, time.Time, string, error) {
		now, err := r.read(ctx)
		if err != nil {
			return nil, r.whole, "", err
		}
		n++
		picture, err := l.shown(now, view, n)
		return now.tree, r.whole, picture, err
	}
}

// PictureOf is the picture of a tree that was read as a whole.
func PictureOf(tree []*job.Info, view draw.View) (string, error) {
	return new(livePicture).shown(reading{tree: tree}, view, 1)
}

func (l *livePicture) shown(now reading, view draw.View, n int64) (string, error) {
	if _, err := l.update(now, view, n); err != nil {
		return "", err
	}
	l.MS = 0
	return string(l.snapshot(0, 0)), nil
}
