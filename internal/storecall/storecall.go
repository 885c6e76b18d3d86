// Package storecall is how the methods of a store are called over HTTP: each is an operation with a name, the role that it asks
// for, and what goes to and fro. Package api serves them, package httpstore calls them, so that both have one table.
//
// Bodies are CBOR (RFC 8949), as messages and arguments are bytes that must not change on their way. They are no public
// protocol: a client and a server are to be of one version of Weir.
package storecall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Where calls are served, and of what type their bodies are.
const (
	Path        = "/v1/store/"
	ContentType = "application/cbor"
	// MaxBody is for the greatest body of a call: all that one call may write, and what says where to.
	MaxBody = job.MaxCommit + 1<<20
)

// Store is what is served: a store as clients and commands use it.
type Store interface {
	store.Store
	store.Limits
	store.Handlers
	Namespace() string
	Shards() int
	// Where says where the jobs are, for people.
	Where() string
	Queues(ctx context.Context) ([]redisstore.QueueInfo, error)
	PauseQueue(ctx context.Context, queue string) (changed bool, err error)
	ForgetType(ctx context.Context, queue, name string) error
	ResumeQueue(ctx context.Context, queue string) (changed bool, err error)
	Limits(ctx context.Context) ([]redisstore.LimitInfo, error)
	Limit(ctx context.Context, name string) (*redisstore.LimitInfo, error)
	Engines(ctx context.Context) ([]store.EngineInfo, error)
	Throttled(ctx context.Context, trees ...job.ID) ([]redisstore.Throttled, error)
	Stats(ctx context.Context) (*redisstore.Stats, error)
	AuditLog(ctx context.Context, n int) ([]redisstore.AuditEntry, error)
	SetSecret(ctx context.Context, id job.ID, secret string) error
	RefreshLock(ctx context.Context, id job.ID, token string, ttl time.Duration) error
	Examine(ctx context.Context, x redisstore.Examination) ([]redisstore.Finding, error)
	Close() error
}

// Role is what a principal must be to make a call.
type Role = redisstore.TokenRole

// ActorHeader is the header of a call that says who acts, as in a query of a URL, if the client names somebody: see job.Actor. A server that knows its callers by
// their tokens says their names in place of that.
const ActorHeader = "Weir-Actor"

// By is who makes a call, if the server knows that better than the client: empty, it does not.
type By string

func (b By) or(by string) string { return cmp.Or(string(b), by) }

// Call is one of a store's methods.
type Call struct {
	Name string
	Role Role
	// Looks tells that it changes nothing, whatever its role is.
	Looks bool
	// In and Out are the types of requests and answers.
	In, Out reflect.Type
	// Serve makes the call with an encoded request and gives encoded answers: one, or those of a stream.
	Serve func(ctx context.Context, s Store, by By, request []byte, answer func([]byte) error) error
	// Streams tells that there may be many answers, each an Item; Live that they are waited for one by one.
	Streams, Live bool
}

// Item is one answer of a stream: a value, or why there are no more.
type Item struct {
	Value   cbor.RawMessage `json:",omitempty"`
	Refusal *Refusal        `json:",omitempty"`
	End     bool            `json:",omitempty"`
}

var calls []Call

// All are all calls, sorted by name.
func All() []Call {
	all := slices.Clone(calls)
	slices.SortFunc(all, func(a, b Call) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Method is a call of which requests are I and answers O.
type Method[I, O any] struct{ Name string }

// Stream is a call of which requests are I, with any number of answers O.
type Stream[I, O any] struct{ Name string }

// define makes a call known.
func define[I, O any](name string, role Role, fn func(ctx context.Context, s Store, by By, in I) (O, error)) Method[I, O] {
	calls = append(calls, Call{Name: name, Role: role, Looks: looks(name, role), In: reflect.TypeFor[I](), Out: reflect.TypeFor[O](), Serve: func(ctx context.Context, s Store, by By, request []byte, answer func([]byte) error) error {
		in, err := read[I](request)
		if err != nil {
			return err
		}
		out, err := fn(ctx, s, by, in)
		if err != nil {
			return err
		}
		raw, err := Encode(out)
		if err != nil {
			return err
		}
		return answer(raw)
	}})
	return Method[I, O]{name}
}

// stream makes a call with a stream of answers known.
func stream[I, O any](name string, role Role, live bool, fn func(ctx context.Context, s Store, in I) iter.Seq2[O, error]) Stream[I, O] {
	calls = append(calls, Call{Name: name, Role: role, Looks: looks(name, role), In: reflect.TypeFor[I](), Out: reflect.TypeFor[O](), Streams: true, Live: live, Serve: func(ctx context.Context, s Store, _ By, request []byte, answer func([]byte) error) error {
		in, err := read[I](request)
		if err != nil {
			return err
		}
		for out, err := range fn(ctx, s, in) {
			if err != nil {
				return err
			}
			raw, err := Encode(out)
			if err == nil {
				err = answer(raw)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}})
	return Stream[I, O]{name}
}

// looks tells whether a call changes nothing.
func looks(name string, role Role) bool {
	return role == toRead || name == "audit-log" || name == "examine"
}

// Subject is what a request is about: a job, a queue or a channel; empty if that cannot be told.
func (c Call) Subject(request []byte) string {
	in := reflect.New(c.In)
	if Decode(request, in.Interface()) != nil {
		return ""
	}
	return subject(in.Elem())
}

func subject(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice:
		if v.Len() > 1 {
			return fmt.Sprintf("%s and %d more", subject(v.Index(0)), v.Len()-1)
		}
		if v.Len() == 1 {
			return subject(v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if f := v.Field(i); f.Type() == idType || name == "Jobs" || name == "From" || name == "Queue" || name == "Channel" {
				return subject(f)
			}
		}
	default:
	}
	return ""
}

// none is the request, or the answer, of calls that need none.
type none = struct{}

// jsonNumber is the tag of a json.Number among values of any type. It is one of those that anybody may use.
const jsonNumber = 0x77656972

var (
	encoder cbor.EncMode
	decoder cbor.DecMode
)

func init() {
	tags := cbor.NewTagSet()
	err := tags.Add(cbor.TagOptions{EncTag: cbor.EncTagRequired, DecTag: cbor.DecTagOptional}, reflect.TypeFor[json.Number](), jsonNumber)
	if err == nil {
		encoder, err = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncModeWithTags(tags)
	}
	if err == nil {
		decoder, err = cbor.DecOptions{
			DefaultMapType: reflect.TypeFor[map[string]any](), DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
			MaxNestedLevels: 1000, MaxArrayElements: 1 << 20, MaxMapPairs: 1 << 17,
		}.DecModeWithTags(tags)
	}
	if err != nil {
		panic(fmt.Sprintf("options of CBOR: %v", err)) //nolint:forbidigo // they are constants
	}
}

// Encode makes a body of a value.
func Encode(v any) ([]byte, error) { return encoder.Marshal(v) }

// Decode reads a body, all of it.
func Decode(raw []byte, v any) error { return decoder.Unmarshal(raw, v) }

// Decoder reads one body after the other.
func Decoder(r io.Reader) *cbor.Decoder { return decoder.NewDecoder(r) }

// read reads a request, and refuses IDs that are none.
func read[I any](raw []byte) (in I, err error) {
	if err := Decode(raw, &in); err != nil {
		return in, fmt.Errorf("%w: the body is no request of this call: %w; is the client of another version than the server?", job.ErrName, err)
	}
	return in, checkIDs(reflect.ValueOf(&in).Elem())
}

// idType is that of IDs of jobs, which become parts of the names of keys.
var idType = reflect.TypeFor[job.ID]()

// checkIDs refuses IDs within a value that are none. Empty ones stand for no job.
func checkIDs(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == idType && v.Len() > 0 {
			if _, err := job.ParseID(v.String()); err != nil {
				return job.ID(v.String()).Missing() // as the store beside Redis says it
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkIDs(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkIDs(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := checkIDs(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for m := v.MapRange(); m.Next(); {
			if err := errors.Join(checkIDs(m.Key()), checkIDs(m.Value())); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}
