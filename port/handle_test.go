package port_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/port"
)

// queue is a toy port: a Reader and a Writer over one slice.
type queue struct {
	messages []json.RawMessage
	keys     []string
	fallback json.RawMessage
	closed   bool
	err      error
}

func (q *queue) Peek() (json.RawMessage, bool, error) {
	if q.err != nil || len(q.messages) == 0 {
		return q.fallback, q.fallback != nil, q.err
	}
	return q.messages[0], true, nil
}

func (q *queue) Read() (json.RawMessage, bool, error) {
	raw, ok, err := q.Peek()
	if err == nil && len(q.messages) > 0 {
		q.messages = q.messages[1:]
	}
	return raw, ok, err
}

func (q *queue) Len() int   { return len(q.messages) }
func (q *queue) Done() bool { return q.closed && len(q.messages) == 0 }

func (q *queue) Write(raw json.RawMessage) error { return q.WriteKey("", raw) }

func (q *queue) WriteKey(key string, raw json.RawMessage) error {
	if q.err == nil {
		q.messages, q.keys = append(q.messages, raw), append(q.keys, key)
	}
	return q.err
}

func (q *queue) Close() error {
	q.closed = true
	return q.err
}

// queues is a toy binder: one queue for each name, in and out alike.
type queues map[string]*queue

func (b queues) get(name string) *queue {
	if b[name] == nil {
		b[name] = new(queue)
	}
	return b[name]
}

func (b queues) BindIn(name string) port.Reader  { return b.get(name) }
func (b queues) BindOut(name string) port.Writer { return b.get(name) }

// pipe is a worker whose ports are ends of the same queue.
type pipe[T any] struct {
	In  port.In[T]  `port:"p"`
	Out port.Out[T] `port:"p"`
}

func newPipe[T any](t testing.TB) (*pipe[T], *queue) {
	t.Helper()
	layout, err := port.Describe(reflect.TypeFor[pipe[T]]())
	if err != nil {
		t.Fatal(err)
	}
	w, b := new(pipe[T]), queues{}
	if err := layout.Bind(w, b); err != nil {
		t.Fatal(err)
	}
	return w, b.get("p")
}

func TestHandles(t *testing.T) {
	t.Parallel()
	w, q := newPipe[int](t)
	if w.In.Name() != "p" || w.Out.Name() != "p" {
		t.Errorf("names %q and %q, want p", w.In.Name(), w.Out.Name())
	}
	if _, ok, err := w.In.Read(); ok || err != nil {
		t.Errorf("reading an empty port: %v, %v", ok, err)
	}
	out := w.Out // copies share the queue
	wantError(t, errors.Join(out.Write(1), out.WriteKey("k", 2), out.Write(3), out.Close()))
	if want := []string{"", "k", ""}; !reflect.DeepEqual(q.keys, want) {
		t.Errorf("keys %q, want %q", q.keys, want)
	}
	if v, ok, err := w.In.Peek(); v != 1 || !ok || err != nil {
		t.Errorf("Peek = %v, %v, %v", v, ok, err)
	}
	if v, ok, err := w.In.Read(); v != 1 || !ok || err != nil {
		t.Errorf("Read = %v, %v, %v", v, ok, err)
	}
	if w.In.Len() != 2 || w.In.Done() {
		t.Errorf("Len = %d, Done = %v, want 2, false", w.In.Len(), w.In.Done())
	}
	var got []int
	for v, err := range w.In.All() {
		wantError(t, err)
		got = append(got, v)
	}
	if !reflect.DeepEqual(got, []int{2, 3}) || !w.In.Done() {
		t.Errorf("All = %v, Done = %v", got, w.In.Done())
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	t.Run("stops when told", func(t *testing.T) {
		t.Parallel()
		w, q := newPipe[int](t)
		q.messages = []json.RawMessage{[]byte(`1`), []byte(`2`)}
		for range w.In.All() {
			break
		}
		if q.Len() != 1 {
			t.Errorf("%d messages left, want 1", q.Len())
		}
	})
	t.Run("goes on after what is no message", func(t *testing.T) {
		t.Parallel()
		w, q := newPipe[int](t)
		q.messages = []json.RawMessage{[]byte(`1`), []byte(`"x"`), []byte(`2`)}
		var errs []error
		var got []int
		for v, err := range w.In.All() {
			got, errs = append(got, v), append(errs, err)
		}
		if !reflect.DeepEqual(got, []int{1, 0, 2}) || errs[0] != nil || !errors.Is(errs[1], port.ErrEncoding) || errs[2] != nil {
			t.Errorf("%v, errors %v", got, errs)
		}
		wantError(t, errs[1], `port "p"`, "int", `"x"`)
	})
	t.Run("stops after an error of the reader", func(t *testing.T) {
		t.Parallel()
		w, q := newPipe[int](t)
		q.messages, q.err = []json.RawMessage{[]byte(`1`)}, errors.New("out of reach")
		var errs []error
		for _, err := range w.In.All() {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], q.err) {
			t.Errorf("errors %v", errs)
		}
	})
	t.Run("leaves the default out", func(t *testing.T) {
		t.Parallel()
		w, q := newPipe[int](t)
		q.fallback = json.RawMessage(`640`)
		for v := range w.In.All() {
			t.Fatalf("yielded %d", v)
		}
		if v, ok, err := w.In.Read(); v != 640 || !ok || err != nil {
			t.Errorf("Read = %v, %v, %v, want the default", v, ok, err)
		}
	})
}

func TestRawHandlesLeaveMessagesAlone(t *testing.T) {
	t.Parallel()
	w, q := newPipe[json.RawMessage](t)
	const stored = ` { "n" : 12345678901234567890 } `
	q.messages = []json.RawMessage{[]byte(stored)}
	if raw, ok, err := w.In.Read(); string(raw) != stored || !ok || err != nil {
		t.Errorf("Read = %s, %v, %v", raw, ok, err)
	}
	wantError(t, w.Out.Write(json.RawMessage(stored)))
	if got := string(q.messages[0]); got != `{"n":12345678901234567890}` {
		t.Errorf("wrote %s", got)
	}
	if err := w.Out.Write(json.RawMessage(`{`)); !errors.Is(err, port.ErrEncoding) {
		t.Errorf("writing garbage: %v", err)
	}
}

func TestHandleErrors(t *testing.T) {
	t.Parallel()
	w, q := newPipe[string](t)
	q.err = errors.New("boom")
	_, ok, err := w.In.Read()
	if ok {
		t.Error("ok with an error")
	}
	_, _, peek := w.In.Peek()
	for _, err := range []error{err, peek, w.Out.Write("a"), w.Out.WriteKey("k", "a"), w.Out.Close()} {
		if !errors.Is(err, q.err) {
			t.Errorf("error %v does not wrap the queue's", err)
		}
		wantError(t, err, `port "p": boom`)
	}
	q.err = nil
	for _, err := range []error{w.Out.Write("\xff"), w.Out.WriteKey("\xff", "a"), w.Out.WriteKey("k", "\xff")} {
		if !errors.Is(err, port.ErrEncoding) {
			t.Errorf("invalid text: %v", err)
		}
	}
	if q.Len() != 0 {
		t.Errorf("%d messages written in spite of the errors", q.Len())
	}
}

func TestUnboundHandles(t *testing.T) {
	t.Parallel()
	check := func(name string, in port.In[int], out port.Out[int]) {
		t.Helper()
		_, _, read := in.Read()
		_, _, peek := in.Peek()
		var all []error
		for _, err := range in.All() {
			all = append(all, err)
		}
		if len(all) != 1 {
			t.Fatalf("All yielded %v", all)
		}
		for _, err := range []error{read, peek, all[0], out.Write(1), out.WriteKey("k", 1), out.Close()} {
			if !errors.Is(err, port.ErrUnbound) {
				t.Errorf("error %v, want ErrUnbound", err)
			}
			wantError(t, err, name, "use it inside Run")
		}
		if in.Len() != 0 || in.Done() {
			t.Errorf("Len = %d, Done = %v, want 0, false", in.Len(), in.Done())
		}
	}
	check("[int]", port.In[int]{}, port.Out[int]{})

	var w pipe[int]
	layout, err := port.Describe(reflect.TypeOf(w))
	wantError(t, err)
	wantError(t, layout.Attach(&w, "node"))
	check(`port "p"`, w.In, w.Out)
}

func TestTypedQueueIsFIFO(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w, _ := newPipe[string](t)
		var model []string
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "write") {
				s := rapid.String().Draw(rt, "s")
				if err := w.Out.Write(s); err != nil {
					rt.Fatal(err)
				}
				model = append(model, s)
				continue
			}
			got, ok, err := w.In.Read()
			if err != nil || ok != (len(model) > 0) || ok && got != model[0] {
				rt.Fatalf("Read = %q, %v, %v with %q waiting", got, ok, err, model)
			}
			if ok {
				model = model[1:]
			}
		}
		if w.In.Len() != len(model) {
			rt.Fatalf("Len = %d, want %d", w.In.Len(), len(model))
		}
	})
}
