package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// noContext is the name that stands for no context at all.
const noContext = "none"

// namedContext is what one context says. What is empty is left to others.
type namedContext struct {
	Redis     string `yaml:"redis,omitempty"`
	Server    string `yaml:"server,omitempty"`     // in place of a Redis
	TokenFile string `yaml:"token_file,omitempty"` // path of the file with the token for the server
	Namespace string `yaml:"namespace,omitempty"`
	Keys      string `yaml:"keys,omitempty"` // path of a file
	Color     string `yaml:"color,omitempty"`
}

// contextFile is the file that keeps the contexts. Comments in it survive changes.
type contextFile struct {
	Current  string                  `yaml:"current,omitempty"`
	Contexts map[string]namedContext `yaml:"contexts"`

	path     string
	comments yaml.CommentMap
	exposed  bool // others may read it, and it has a password
}

// Keys that the file may have: at its top, and in each context.
var (
	topKeys     = []string{"current", "contexts"}
	contextKeys = []string{"redis", "server", "token_file", "namespace", "keys", "color"}
	colorModes  = []string{"auto", "always", "never"}
)

// contextPath is where the file is, or would be.
func contextPath() (string, error) {
	if path := os.Getenv("WEIR_CONFIG"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", usageError{fmt.Errorf("there is no place for a file of contexts: %w; set WEIR_CONFIG to the path of one", err)}
	}
	return filepath.Join(dir, "weir", "config.yaml"), nil
}

// readContexts reads the file. One that is not there is empty.
func readContexts() (*contextFile, error) {
	path, err := contextPath()
	if err != nil {
		return nil, err
	}
	f := &contextFile{path: path, Contexts: map[string]namedContext{}, comments: yaml.CommentMap{}}
	data, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("reading the contexts: %w", err)}
	}
	if err := f.decode(data); err != nil {
		return nil, usageError{err}
	}
	info, err := os.Stat(path)
	f.exposed = err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o044 != 0 &&
		slices.ContainsFunc(slices.Collect(maps.Values(f.Contexts)), func(c namedContext) bool { return hasPassword(c.Redis) })
	return f, nil
}

// decode reads the text of the file.
func (f *contextFile) decode(data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.CommentToMap(f.comments))
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return f.located(err)
	}
	if err := d.Decode(new(any)); err == nil {
		return fmt.Errorf("%s: there is a second document: put everything into one", f.path)
	}
	if f.Contexts == nil {
		f.Contexts = map[string]namedContext{}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		if err := checkContext(name, f.Contexts[name]); err != nil {
			return fmt.Errorf("%s: context %q: %w", f.path, name, err)
		}
	}
	return nil
}

// unknownKey is what the library says of a key that it does not know.
var unknownKey = regexp.MustCompile(`^unknown field "(.*)"$`)

// located says in one line what is wrong with the file, and where.
func (f *contextFile) located(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	place, text := at.GetToken().Position, at.GetMessage()
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		known := contextKeys
		if place.Column == 1 {
			known = topKeys
		}
		text = fmt.Sprintf("unknown key %q: %s", m[1], port.Suggest(m[1], known))
	}
	return fmt.Errorf("%s:%d:%d: %s", f.path, place.Line, place.Column, text)
}

// checkContext refuses what cannot be a context. Its URL is looked at when it is used.
func checkContext(name string, c namedContext) error {
	if name == noContext {
		return fmt.Errorf("%q stands for no context at all: use another name", noContext)
	}
	if err := job.CheckName("context", name); err != nil {
		return err
	}
	if c.Redis != "" && c.Server != "" {
		return errors.New("it has a Redis and a server: use one of them")
	}
	if err := (redisstore.Config{Namespace: c.Namespace}).Validate(); err != nil {
		return err
	}
	return oneOf("color", cmp.Or(c.Color, colorModes[0]), colorModes)
}

// write replaces the file at once: whoever reads it sees the old one or the new one.
func (f *contextFile) write() error {
	data, err := yaml.MarshalWithOptions(f, yaml.WithComment(f.comments))
	if err != nil {
		return fmt.Errorf("writing the contexts: %w", err)
	}
	path := f.path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link to the file stays one
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing the contexts: %w", err)
	}
	draft, err := os.CreateTemp(dir, ".config-*.yaml") // for its owner alone
	if err != nil {
		return fmt.Errorf("writing the contexts: %w", err)
	}
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the contexts: %w", errors.Join(err, os.Remove(draft.Name())))
	}
	return nil
}

// find returns a context by its name; how says who named it.
func (f *contextFile) find(name, how string) (namedContext, error) {
	c, ok := f.Contexts[name]
	if !ok {
		known := slices.Sorted(maps.Keys(f.Contexts))
		return c, usageError{fmt.Errorf("%sthere is no context %q in %s: %s", how, name, f.path, port.Suggest(name, known))}
	}
	return c, nil
}

// hasPassword tells whether the URL of a Redis has one.
func hasPassword(url string) bool {
	shown, err := redisconn.Mask(url)
	return strings.Contains(shown, "***") || err == nil && strings.Contains(url, "password=")
}

// setting is a value with where it comes from.
type setting struct {
	Value string `json:"value"`
	From  string `json:"from"`
}

// effective are the settings that hold for a command.
type effective struct {
	context                       string // in effect, empty for none
	redis, namespace, keys, color setting
	server, tokenFile             setting // in place of a Redis
}

// resolve finds the settings that hold: flags before the environment before the file. A
// context that is named with a flag goes before the environment, too.
func (s *settings) resolve() (*effective, error) {
	c, err := s.chosen()
	if err != nil {
		return nil, err
	}
	if s.command != nil && s.namespace == "" && s.command.Flags().Changed("namespace") {
		return nil, usageError{errors.New("--namespace is empty: give a name, or leave it out")}
	}
	from := "context " + c.name
	redis := []setting{{s.redis, "--redis"}, fromEnv("WEIR_REDIS_URL"), {c.Redis, from}}
	server := []setting{{s.server, "--server"}, fromEnv("WEIR_SERVER"), {c.Server, from}}
	tokenFile := []setting{{s.tokenFile, "--token-file"}, fromEnv("WEIR_TOKEN_FILE"), {c.TokenFile, from}}
	namespace := []setting{{s.namespace, "--namespace"}, fromEnv("WEIR_NAMESPACE"), {c.Namespace, from}, {redisstore.DefaultNamespace, "default"}}
	keys := []setting{{s.keys, "--keys"}, fromEnv("WEIR_KEYS"), {c.Keys, from}}
	if c.flagged {
		keys[1], keys[2] = keys[2], keys[1]
		redis[1], redis[2] = redis[2], redis[1]
		server[1], server[2] = server[2], server[1]
		tokenFile[1], tokenFile[2] = tokenFile[2], tokenFile[1]
		namespace[1], namespace[2] = namespace[2], namespace[1]
	}
	e := &effective{
		context: c.name, namespace: first(namespace), keys: first(keys), tokenFile: first(tokenFile),
		color: first([]setting{{c.Color, from}, {colorModes[0], "default"}}),
	}
	for i := range redis {
		switch {
		case redis[i].Value != "" && server[i].Value != "":
			return nil, usageError{fmt.Errorf("%s and %s are both given: use one of them", redis[i].From, server[i].From)}
		case redis[i].Value != "" && s.tokenFile != "":
			return nil, usageError{fmt.Errorf("--token-file is for a server, and %s is given: use --server, or leave it out", redis[i].From)}
		case redis[i].Value != "" || server[i].Value != "":
			e.redis, e.server = redis[i], server[i]
			if e.redis.Value == "" {
				e.redis = setting{}
			} else {
				e.server = setting{}
			}
			return e, nil
		}
	}
	return e, nil
}

// readToken returns the token for the server, empty for none.
func (e *effective) readToken() (string, error) {
	if e.tokenFile.Value == "" {
		return strings.TrimSpace(os.Getenv("WEIR_TOKEN")), nil
	}
	raw, err := os.ReadFile(e.tokenFile.Value)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: reading the token for the server: %w", e.tokenFile.From, err)}
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", usageError{fmt.Errorf("%s: %s has no token: put in what weir token create printed", e.tokenFile.From, e.tokenFile.Value)}
	}
	return token, nil
}

func fromEnv(name string) setting { return setting{os.Getenv(name), name} }

// first returns the first setting that has a value.
func first(all []setting) setting {
	for _, one := range all {
		if one.Value != "" {
			return one
		}
	}
	return setting{}
}

// chosenContext is the context that is in effect; without a name there is none.
type chosenContext struct {
	namedContext
	name    string
	flagged bool // by --context
}

// chosen finds the context: the one that is named, or else the current one. That holds only
// if no Redis and no server is given otherwise: its namespace means nothing in another Redis.
func (s *settings) chosen() (chosenContext, error) {
	name, how := s.context, "--context: "
	if name == "" {
		name, how = os.Getenv("WEIR_CONTEXT"), "WEIR_CONTEXT: "
	}
	given := s.redis != "" || s.server != "" || os.Getenv("WEIR_REDIS_URL") != "" || os.Getenv("WEIR_SERVER") != ""
	if name == noContext || name == "" && given {
		return chosenContext{}, nil
	}
	f, err := readContexts()
	if err != nil {
		return chosenContext{}, err
	}
	s.warn(f)
	if name == "" {
		name, how = f.Current, "current: "
	}
	if name == "" {
		return chosenContext{}, nil
	}
	c, err := f.find(name, how)
	return chosenContext{c, name, s.context != ""}, err
}

// warn says once that others may read a password in the file.
func (s *settings) warn(f *contextFile) {
	if !f.exposed || s.warned {
		return
	}
	s.warned = true
	fmt.Fprintf(s.stderr(), "weir: warning: %s has a password and others may read it; chmod 600 %s\n", f.path, f.path)
}

// paint makes what is printed follow the color of the context, unless the environment
// says something. A file that is wrong is told of when it matters.
func (s *settings) paint(wish *term.Wish) {
	if wish.Color != "" || os.Getenv("NO_COLOR") != "" || os.Getenv("CLICOLOR_FORCE") != "" {
		return
	}
	if e, err := s.resolve(); err == nil { // else the command says what is wrong
		wish.Color = e.color.Value
	}
}
