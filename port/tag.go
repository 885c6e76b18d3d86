package port

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// tagOptions are the options of a port tag, in the order they are listed in.
var tagOptions = []string{"limit", "channel", "default", "required", "keep"}

// fieldSpec returns the spec of a handle field: its type and its port tag,
// which is the name (empty for the field's name in snake case) and options.
func fieldSpec(f reflect.StructField) (Spec, error) {
	h := newHandle(f.Type)
	spec := Spec{Dir: h.dir(), Type: h.elem().String()}
	if n := FormatOf(reflect.New(h.elem()).Interface()).Version; n > 1 {
		spec.MessageVersion = n
	}
	tag, ok := f.Tag.Lookup("port")
	if key := nearKey(string(f.Tag)); !ok && key == "port" {
		return spec, fmt.Errorf("malformed tag: write it as `port:\"name,limit=100\"`")
	} else if !ok && key != "" {
		return spec, fmt.Errorf("unknown tag key %q: did you mean port, as in `port:\"name,limit=100\"`?", key)
	}
	name, options, _ := strings.Cut(tag, ",")
	if err := setName(&spec, name, f.Name); err != nil {
		return spec, err
	}
	if strings.HasSuffix(tag, ",") && options == "" {
		return spec, errors.New("port tag: nothing follows the comma: remove it or add an option")
	}
	if err := parseOptions(&spec, options); err != nil {
		return spec, fmt.Errorf("port tag: %w", err)
	}
	if spec.Keep && (spec.Dir == Input || len(spec.Channels) == 0) {
		return spec, errors.New("port tag: option keep: only an output port with a channel needs it, others keep their messages anyway")
	}
	if spec.Default == nil {
		return spec, nil
	}
	value := reflect.New(h.elem())
	if err := Decode(spec.Default, value.Interface()); err != nil {
		return spec, fmt.Errorf("port tag: option default: %w", err)
	}
	return spec, nil
}

// tagKey finds the keys of a struct tag.
var tagKey = regexp.MustCompile(`([^\s":]+):\s*("(?:[^"\\]|\\.)*")?`)

// nearKey returns the key of a tag that is "port" or nearly so, if there is one.
func nearKey(tag string) string {
	for _, found := range tagKey.FindAllStringSubmatch(tag, -1) {
		if key := strings.ToLower(found[1]); editDistance(key, "port") <= 1 || swapped(key, "port") {
			return found[1]
		}
	}
	return ""
}

// swapped tells whether a word is another one with two neighbouring bytes exchanged.
func swapped(word, other string) bool {
	for i := 1; i < len(other); i++ {
		if word == other[:i-1]+other[i:i+1]+other[i-1:i]+other[i+1:] {
			return true
		}
	}
	return false
}

func setName(spec *Spec, name, field string) error {
	switch spec.Name = name; name {
	case Any:
		return errors.New(`port tag: the name "*" stands for ports without a field: give this one a name of its own`)
	case "":
		spec.Name = snake(field)
		if err := CheckName(spec.Name); err != nil {
			return fmt.Errorf("the field's name is not a port name, set one with a port tag: %w", err)
		}
		return nil
	}
	if err := CheckName(name); err != nil {
		return fmt.Errorf("port tag: %w", err)
	}
	return nil
}

// parseOptions sets the options key=value,key=value of a tag. The value of
// default is the rest of the tag, so that it may hold commas.
func parseOptions(spec *Spec, rest string) error {
	for rest != "" {
		var option string
		if strings.HasPrefix(rest, "default=") {
			option, rest = rest, ""
		} else {
			var more bool
			if option, rest, more = strings.Cut(rest, ","); more && rest == "" {
				return errors.New("nothing follows the last comma: remove it or add an option")
			}
		}
		key, value, hasValue := strings.Cut(option, "=")
		var err error
		switch {
		case key == "required" && !hasValue:
			spec.Required = true
			if spec.Dir == Output {
				err = errors.New("option required: an output port is never required")
			}
		case key == "keep" && !hasValue:
			spec.Keep = true
		case key == "required" || key == "keep":
			err = fmt.Errorf("option %s takes no value", key)
		case key == "limit" && hasValue:
			err = setLimit(spec, value)
		case key == "default" && hasValue:
			err = setDefault(spec, value)
		case key == "channel" && hasValue:
			spec.Channels = append(spec.Channels, value)
			err = CheckChannel(value)
		case key == "limit" || key == "default" || key == "channel":
			err = fmt.Errorf("option %s needs a value: %s=…", key, key)
		default:
			err = fmt.Errorf("unknown option %q: %s", shorten(key), Suggest(key, tagOptions))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func setLimit(spec *Spec, value string) error {
	if spec.Limit != 0 {
		return errors.New("option limit is given twice: remove one")
	}
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		return fmt.Errorf("option limit: %q is not a positive integer", shorten(value))
	}
	spec.Limit = n
	return nil
}

func setDefault(spec *Spec, value string) error {
	raw, err := Encode(json.RawMessage(value))
	if err != nil {
		return fmt.Errorf("option default: %w (a text needs quotes, as in default=\\\"abc\\\")", err)
	}
	spec.Default = raw
	return nil
}
