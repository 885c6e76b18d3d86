package redisstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestHandlersAreStored(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		ctx := t.Context()
		s := enginetest.Open(t, redisstore.Config{URL: url, Namespace: redistest.Namespace(t)})
		set := func(typ, text string) (int64, error) {
			return s.SetHandler(ctx, job.TypeInfo{Type: typ, Queue: job.DefaultQueue}, json.RawMessage(text))
		}
		for n := range int64(store.MaxHandlerVersions + 5) {
			if version, err := set("a", fmt.Sprintf(`{"n": %d}`, n+1)); err != nil || version != n+1 {
				t.Fatalf("version %d, %v; want %d", version, err, n+1)
			}
		}
		if version, err := set("b", ""); err != nil || version != 0 {
			t.Fatalf("expecting one: version %d, %v", version, err)
		}
		versions, err := s.HandlerVersions(ctx, "a")
		if err != nil || len(versions) != store.MaxHandlerVersions || versions[0].Version != 25 || string(versions[0].Text) != `{"n": 25}` || versions[0].At.IsZero() {
			t.Errorf("versions %+v, %v", versions, err)
		}
		all, revision, err := s.Handlers(ctx)
		if err != nil || revision != 26 || len(all) != 2 || all[0].Version != 25 || all[1].Type != "b" || all[1].Text != nil {
			t.Errorf("all %+v, revision %d, %v", all, revision, err)
		}
		if now, err := s.HandlersRevision(ctx); err != nil || now != revision {
			t.Errorf("revision %d, %v", now, err)
		}
		for n, text := range []string{`{"n": 1}`, "", `{"n": 2}`} { // the first is number 1, though one was expected before
			if version, err := set("b", text); err != nil || version != int64(n+1) {
				t.Errorf("after one was expected: version %d, %v; want %d", version, err, n+1)
			}
		}
		if _, err := s.Type(ctx, job.DefaultQueue, "a"); err != nil {
			t.Errorf("its type: %v", err)
		}
		if err := s.Register(ctx, []job.TypeInfo{{Type: "go", Queue: job.DefaultQueue}}); err != nil {
			t.Fatal(err)
		}
		if _, err := set("go", "{}"); !errors.Is(err, job.ErrExists) {
			t.Errorf("a type of a program: %v", err)
		}
		if _, err := set("no name", "{}"); !errors.Is(err, job.ErrName) {
			t.Errorf("a bad name: %v", err)
		}
		if _, err := set("a", string(make([]byte, store.MaxHandler+1))); !errors.Is(err, job.ErrTooLarge) {
			t.Errorf("a large one: %v", err)
		}
	})
}
