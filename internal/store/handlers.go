package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weirworks/weir/job"
)

// Limits of what is stored of handlers in a namespace.
const (
	MaxHandlers        = 10_000    // types
	MaxHandler         = 256 << 10 // bytes of one version
	MaxHandlerVersions = 20        // of one type; older ones are removed
)

// HandlerVersion is one version of a handler as it is stored: code for jobs of a type that no program links, see package handler.
type HandlerVersion struct {
	Type    string          `json:"type"`
	Version int64           `json:"version"` // counts up, from 1, also over deletions; 0: there has been no handler yet, but jobs of the type
	At      time.Time       `json:"at"`      // when it was stored
	Text    json.RawMessage `json:"text"`    // what package handler makes of it; nil: the handler was deleted
}

// Handlers keeps handlers by type. The newest version counts.
type Handlers interface {
	// SetHandler registers a type, stores a new version of its handler, or with a nil text that there is none any more, and returns its number.
	// A type that is registered otherwise, as some program has its code, gives an error that wraps job.ErrExists.
	SetHandler(ctx context.Context, t job.TypeInfo, text json.RawMessage) (version int64, err error)
	// HandlerVersions returns the last MaxHandlerVersions versions of the handler of a type, the newest first; none if there never was one.
	HandlerVersions(ctx context.Context, typ string) ([]HandlerVersion, error)
	// Handlers returns the newest version of each type that ever had a handler, sorted by type, and the revision of them all.
	Handlers(ctx context.Context) (all []HandlerVersion, revision int64, err error)
	// HandlersRevision returns a number that counts how often a handler was set or deleted.
	HandlersRevision(ctx context.Context) (int64, error)
}
