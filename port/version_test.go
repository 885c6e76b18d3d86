package port_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weirworks/weir/port"
)

// third is a message of version 3, whose older ones were numbers.
type third struct{ Text string }

func (third) MessageVersion() int { return 3 }

func (third) UpgradeMessage(from int, old json.RawMessage) (json.RawMessage, error) {
	if from == 1 {
		return json.RawMessage(fmt.Sprintf("%q", old)), nil
	}
	return json.RawMessage(fmt.Sprintf(`{"Text":%s}`, old)), nil
}

// A message says of which version it is, and is read as the newest, step by step; a newer one is not read.
func TestMessageVersions(t *testing.T) {
	t.Parallel()
	if n := port.VersionOf(third{}); n != 3 {
		t.Errorf("VersionOf = %d", n)
	}
	if n := port.VersionOf((*third)(nil)); n != 1 {
		t.Errorf("VersionOf(nil) = %d", n)
	}
	by, err := port.SealBy(json.RawMessage(`"7"`), "job:", "a")
	wantError(t, err)
	for stored, want := range map[string]string{
		"7": "7", string(port.SealVersion(json.RawMessage(`"7"`), 2)): "7", string(port.SealVersion(by, 2)): "7",
		string(port.SealVersion(json.RawMessage(`{"Text":"x"}`), 3)): "x", string(port.SealVersion(port.SealVersion([]byte("7"), 3), 1)): "7",
	} {
		var got third
		if err := port.DecodeStored(json.RawMessage(stored), &got); err != nil || got.Text != want {
			t.Errorf("%q is %+v, %v, want %s", stored, got, err, want)
		}
	}
	_, context := port.Split(port.SealVersion(by, 2))
	if !json.Valid(context) || port.ContextVersionOf(context) != 2 {
		t.Errorf("context %s", context)
	}
	var got third
	if err := port.DecodeStored(port.SealVersion(by, 4), &got); !errors.Is(err, port.ErrNewer) {
		t.Errorf("of a newer version: %v", err)
	}
	var raw json.RawMessage
	if err := port.DecodeStored(port.SealVersion(by, 4), &raw); err != nil || string(raw) != `"7"` {
		t.Errorf("as it is: %s, %v", raw, err)
	}
}
