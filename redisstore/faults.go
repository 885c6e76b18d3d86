package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/job"
)

// fault is an answer of Redis that says that it does not do what was asked.
type fault struct {
	prefix string // how the answer begins, without ERR
	kind   error  // job.ErrUnavailable: asked again it may do it; job.ErrConfig: not until somebody acts
	advice string
}

// faults are all answers that say nothing about what was asked for. Any other means that it
// will never be granted: job.ErrRefused. NOSCRIPT is no fault, nor is a missing function at first: the
// text is sent again at once, to all servers that are known to have a part of the data.
var faults = []fault{
	{"LOADING", job.ErrUnavailable, "it reads its data from disk"},
	{"OOM", job.ErrUnavailable, delivery.FullAdvice},
	{"MISCONF", job.ErrUnavailable, "it cannot write to its disk: look at its log and at the disk"},
	{"READONLY", job.ErrUnavailable, "it is a replica: if this lasts, name the master in the URL, or use redis+sentinel://"},
	{"MASTERDOWN", job.ErrUnavailable, "it is a replica without a master: wait for the failover"},
	{"NOREPLICAS", job.ErrUnavailable, "too few replicas are connected: bring them back, or lower min-replicas-to-write"},
	{"BUSY", job.ErrUnavailable, "it is busy with a long script: wait, or end that with SCRIPT KILL or FUNCTION KILL"},
	{"CLUSTERDOWN", job.ErrUnavailable, "a part of the cluster is not served: bring its servers back"},
	{"TRYAGAIN", job.ErrUnavailable, slotMoves},
	{"Script attempted to access a non local key", job.ErrUnavailable, slotMoves}, // of a script; see watching in base.lua
	{"Function not found", job.ErrUnavailable, "a server of the cluster is new: a part of the cluster is moving to it"},
	{"max number of clients", job.ErrUnavailable, "raise maxclients, or lower pool_size in the URLs of its clients"},
	{"NOAUTH", job.ErrConfig, "give user and password in the URL"},
	{"Protocol error: unauthenticated", job.ErrConfig, "give user and password in the URL"}, // to a long command
	{"WRONGPASS", job.ErrConfig, "correct user and password in the URL"},
	{"NOPERM", job.ErrConfig, "its user may not do this: weir acl prints the rules that a user needs"},
	{"The user executing the script can't", job.ErrConfig, "its user may not do this: weir acl prints the rules that a user needs"},
}

// slotMoves is what a fault says of a slot that is on its way.
const slotMoves = "a part of the cluster is moving to another server: if this lasts, see redis-cli --cluster check, and fix"

// Those that name another server of a cluster.
var (
	elsewhere     = []string{"MOVED", "ASK"}
	clusterMoves  = fault{kind: job.ErrUnavailable, advice: slotMoves}
	clusterUnsaid = fault{kind: job.ErrConfig, advice: "it is part of a cluster: write redis+cluster:// in the URL"}
)

// faultOf returns what kind of fault an answer is, nil if it is none of them.
func (s *Store) faultOf(err error) *fault {
	for i := range faults {
		if redis.HasErrorPrefix(err, faults[i].prefix) {
			return &faults[i]
		}
	}
	for _, prefix := range elsewhere {
		if redis.HasErrorPrefix(err, prefix) {
			if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
				return &clusterMoves
			}
			return &clusterUnsaid
		}
	}
	return nil
}

// answered tells whether an error is an answer of Redis that will stay the same.
func (s *Store) answered(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	f := s.faultOf(err)
	return f == nil || f.kind != job.ErrUnavailable //nolint:errorlint // the table has the values themselves
}

// explain says in one line what to do about an error of the connection.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	if refused := redisconn.Distrust(err, s.where); refused != nil {
		return refused
	}
	if f := s.faultOf(err); f != nil {
		return fmt.Errorf("%w: Redis at %s says %w; %s", f.kind, s.where, err, f.advice)
	}
	var answer redis.Error
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isNil(err):
		return err
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("the store is closed: %w", err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return fmt.Errorf("%w: %w at %s; raise pool_size in the URL, or do less at a time", job.ErrUnavailable, err, s.where)
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w at %s: %w; check that it runs and that the address is right", job.ErrUnreachable, s.where, err)
	case errors.As(err, &answer):
		return fmt.Errorf("%w: Redis at %s: %w", job.ErrRefused, s.where, err)
	}
	return err
}
