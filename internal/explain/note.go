package explain

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/weirworks/weir/internal/store"
)

// Note says in a line what a job has noted in its log: an entry of a slog.JSONHandler as its level, its text and its attributes, without
// the time, which the log has anyway; what somebody did to it by hand, and what became of its runs, as that; else the JSON as it is.
func Note(raw json.RawMessage) string {
	var acts map[string]string
	if json.Unmarshal(raw, &acts) == nil && len(acts) == 1 {
		for done, text := range acts {
			switch {
			case strings.HasPrefix(text, store.FailedByHand):
				return done + " " + text
			case done == "lost", done == "throttled": // by scripts of the store
				return done + ": " + text
			}
		}
	}
	var entry struct {
		Level *string `json:"level"`
		Msg   *string `json:"msg"`
	}
	if json.Unmarshal(raw, &entry) != nil || entry.Level == nil || entry.Msg == nil {
		return string(raw)
	}
	parts := []string{*entry.Level, *entry.Msg}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the {: it is an object
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return string(raw)
		}
		switch name, _ := key.(string); name {
		case "time", "level", "msg":
		default:
			parts = append(parts, name+"="+bare(value))
		}
	}
	return strings.Join(parts, " ")
}

// bare is a JSON value without the quotes of a text that needs none.
func bare(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" || strings.ContainsAny(text, " =\"\\\n\t") {
		return string(value)
	}
	return text
}
