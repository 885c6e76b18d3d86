package graph_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
)

// Messages of the type that a port is registered with are sent and received; others are refused, also where JSON would fit.
func TestPoint11Typed(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{})
	h := e.StartWorker(&Step{By: 2})
	ctx := t.Context()
	if err := client.Send(ctx, h, "in", 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := client.Send(ctx, h, "in", json.RawMessage("3")); err != nil {
		t.Fatal(err)
	}
	type Order struct{ ID int }
	for what, err := range map[string]error{
		"another kind of number": client.Send(ctx, h, "in", 1.0),
		"a text":                 client.Send(ctx, h, "in", "1"),
		"a struct":               client.Send(ctx, h, "in", Order{1}),
		"nothing of that type":   client.Send[Order](ctx, h, "in"),
	} {
		if !errors.Is(err, port.ErrEncoding) {
			t.Errorf("%s: %v", what, err)
		}
	}
	e.RunUntilIdle()
	if _, _, err := client.Receive[string](ctx, h, "out"); !errors.Is(err, port.ErrEncoding) {
		t.Errorf("received as a text: %v", err)
	}
	for _, want := range []int{2, 4, 6} {
		got, ok, err := client.Receive[int](ctx, h, "out")
		if got != want || !ok || err != nil {
			t.Errorf("got %d, %v, %v, want %d", got, ok, err, want)
		}
	}
	if _, ok, err := client.Receive[int](ctx, h, "out"); ok || err != nil {
		t.Errorf("of an empty port: %v, %v", ok, err)
	}
}
