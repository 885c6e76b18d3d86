package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// textHelp is the help of --text.
const textHelp = "messages are strings, not JSON: each word or line is sent as it is"

// messageMark is the value of the key weir by which a line of weir read -o jsonl is known to be a message with its
// context, rather than one that happens to have the same keys.
const messageMark = "message"

// markedMessage is a line of weir read and weir peek with -o jsonl, which weir send takes for the message that it was.
type markedMessage struct {
	job.Message
	Weir string `json:"weir"`
}

// outgoing is a message to be sent.
type outgoing struct {
	data json.RawMessage
	own  port.Context // that it was read with; nil if it was not
}

// in returns the context under which the message is written: what it was read with takes the sender's place.
func (o outgoing) in(ctx context.Context, sender port.Context) context.Context {
	if o.own == nil {
		o.own = sender
	}
	return job.WithContext(ctx, o.own)
}

// like tells whether two messages have the same context.
func (o outgoing) like(p outgoing) bool {
	return (o.own == nil) == (p.own == nil) && maps.EqualFunc(o.own, p.own, reflect.DeepEqual)
}

// parseMessage reads a word of a command line, or a line of a file: JSON, unless all is text.
func parseMessage(text string, asText bool) (out outgoing, err error) {
	switch {
	case !utf8.ValidString(text):
		return out, errors.New("the text is not valid UTF-8")
	case asText:
		out.data, err = port.Encode(text)
	default:
		if err = checkJSON(text); err == nil {
			out = unmarked(json.RawMessage(text))
		}
	}
	if err == nil {
		err = job.CheckSize("the message", len(out.data))
	}
	return out, err
}

// unmarked returns the message that a line of weir read -o jsonl is, or else the line as a message.
func unmarked(raw json.RawMessage) outgoing {
	plain := outgoing{data: raw}
	if !bytes.Contains(raw, []byte(`"weir"`)) {
		return plain
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	var m markedMessage
	if d.Decode(&m) != nil || m.Weir != messageMark || m.Data == nil {
		return plain
	}
	if m.Context == nil {
		m.Context = port.Context{} // and not that of the sender
	}
	return outgoing{data: m.Data, own: m.Context}
}

// checkJSON says what is wrong with a text that is not JSON, where, and what to write instead.
func checkJSON(text string) error {
	err := port.Check([]byte(text))
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if err := strict.Check([]byte(text)); err != nil {
			return fmt.Errorf("it %w", err)
		}
		return nil
	case strings.TrimSpace(text) == "":
		return errors.New(`it is empty, which is not valid JSON: use '""', or --text to send strings`)
	case !errors.As(err, &syntax):
		return fmt.Errorf("it is not valid JSON: %w", err)
	case !strings.ContainsAny(text[:1], `{["-0123456789`):
		quoted, err := port.Encode(text)
		if err != nil || len(quoted) > 60 {
			return errors.New("it is not valid JSON: put it in double quotes, or use --text to send strings")
		}
		return fmt.Errorf("it is not valid JSON: use %s, or --text to send strings", shellQuoted(string(quoted)))
	}
	return fmt.Errorf("it is not valid JSON: %w; correct it, or use --text to send it as a text", placed(text, syntax))
}

// placed is what is wrong with a text that is not JSON, and where.
func placed(text string, wrong *json.SyntaxError) error {
	at := min(max(int(wrong.Offset)-1, 0), len(text))
	from, to := max(at-20, 0), min(at+1, len(text))
	for from < at && !utf8.RuneStart(text[from]) {
		from++
	}
	return fmt.Errorf("%w at character %d, behind %q", wrong, utf8.RuneCountInString(text[:at])+1, strings.ToValidUTF8(text[from:to], ""))
}

// flagJSON says what is wrong with the value of a flag that is to be JSON, and where.
func flagJSON(flag, text string) error {
	var wrong *json.SyntaxError
	if err := json.Unmarshal([]byte(text), new(json.RawMessage)); errors.As(err, &wrong) {
		return fmt.Errorf("%s %.60q is not valid JSON: %w", flag, text, placed(text, wrong))
	}
	return nil
}
