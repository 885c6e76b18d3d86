package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Languages that every runner knows. One that the operator of a runner adds has a name that begins with CustomLang.
const (
	Node   = "node"
	Python = "python"
	Shell  = "sh"
	HTTP   = "http"

	CustomLang = "x-"
)

// Languages are those that every runner knows.
var Languages = []string{Node, Python, Shell, HTTP}

// Definition is the handler of a type.
type Definition struct {
	// Lang is node, python, sh or http, or x-… for a command that the operator of the runner has configured. Required.
	Lang string `json:"lang"`
	// Body is the code that is run for each payload; of http the URL that is asked. Required.
	Body string `json:"body"`
	// Before runs once in each process, before all else.
	Before string `json:"before,omitempty"`
	// BeforeEach and AfterEach run before and after each batch of payloads.
	BeforeEach string `json:"beforeEach,omitempty"`
	AfterEach  string `json:"afterEach,omitempty"`
	// EID names a compatible engine: it is kept and returned, and does nothing. Processes are for one type each, as code of one handler
	// could reach that of another in the same process.
	EID string `json:"eid,omitempty"`
	// Options are limits and how failures are retried. Their zero values are the defaults.
	Options Options `json:"options,omitzero"`
	// Prefix is what the names of types have in front that the handler's lines name, as it belongs to a client of its own, see
	// Validate. It is the server's to set.
	Prefix string `json:"prefix,omitempty"`
}

// Options say how a handler runs.
type Options struct {
	Timeout   Duration          `json:"timeout,omitempty"`   // for one payload; default 1m
	Tries     int               `json:"tries,omitempty"`     // runs of a payload that may end as retry or error; default no limit but Total
	Total     Duration          `json:"total,omitempty"`     // for how long a payload is tried again; default 6h
	Delay     Duration          `json:"delay,omitempty"`     // before the second try, doubled each time; default 1s
	MaxDelay  Duration          `json:"maxDelay,omitempty"`  // at most; default 5m
	Batch     int               `json:"batch,omitempty"`     // payloads that a process is given at a time, at most; default 100, of http 1
	Recycle   int               `json:"recycle,omitempty"`   // payloads after which a process is replaced; default 100,000
	Idle      Duration          `json:"idle,omitempty"`      // after which a process without work ends; default 5m
	Memory    int64             `json:"memory,omitempty"`    // bytes that a process may allocate; default 512 MiB
	Disk      int64             `json:"disk,omitempty"`      // bytes that a process may write; default 64 MiB
	Output    int64             `json:"output,omitempty"`    // bytes that the run of a payload may print; default 1 MiB
	Processes int               `json:"processes,omitempty"` // that a process may have, with threads; default 64
	Network   bool              `json:"network,omitempty"`   // it needs the network, which the operator has to allow, too
	Secrets   []string          `json:"secrets,omitempty"`   // names of secrets that become variables of its environment
	Env       map[string]string `json:"env,omitempty"`       // more variables of its environment
	Then      string            `json:"then,omitempty"`      // type of the job that each result goes to
	Exits     map[string]int    `json:"exits,omitempty"`     // of sh and x-…: exit code -> status, besides 0 -> 200 and 75 -> 199; others are 500
}

// Limits of options.
const (
	MaxBatch     = 1000
	MaxTime      = 24 * time.Hour // of a payload
	MaxTotal     = 365 * 24 * time.Hour
	MaxMemory    = 64 << 30
	MaxOutput    = 64 << 20
	MaxProcesses = 4096
	MaxSecrets   = 32
	maxRecycle   = 1_000_000
)

// Duration is a time in JSON: a string such as "30s" or "1h30m".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not a time: write it like 500ms, 30s or 1h30m", text)
	}
	*d = Duration(v)
	return nil
}

// Parse reads a definition that somebody wrote, all keys of which must be known and there once, and validates it.
func Parse(raw []byte) (d Definition, err error) {
	if err := decode(raw, &d); err != nil {
		return d, err
	}
	return d, d.Validate()
}

// ParseStored is Parse, and takes a Stored, too, as weir handler get prints it: what is not of the definition there is left out.
func ParseStored(raw []byte) (Definition, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil || keys["definition"] == nil {
		return Parse(raw)
	}
	var s Stored
	if err := decode(raw, &s); err != nil {
		return Definition{}, err
	}
	s.Definition.Prefix = "" // of the client that has the type, which may be another one: Set knows
	return s.Definition, s.Definition.Validate()
}

func decode(raw []byte, v any) error {
	if err := strict.Decode(raw, v); err != nil {
		return fmt.Errorf("%w of a handler: %w", job.ErrValue, err)
	}
	if err := strict.Check(raw); err != nil {
		return fmt.Errorf("%w of a handler: it %w", job.ErrValue, err)
	}
	return nil
}

var (
	customRE = regexp.MustCompile(`^x-[a-z0-9][a-z0-9_.+-]{0,30}$`)
	envRE    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	eidRE    = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`)
	exitRE   = regexp.MustCompile(`^(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$`)
)

// Validate names every bad field. The error wraps job.ErrValue.
func (d *Definition) Validate() error {
	var bad problems
	switch {
	case d.Lang == "":
		bad.add("lang is missing: use %s", strings.Join(Languages, ", "))
	case !slices.Contains(Languages, d.Lang) && !customRE.MatchString(d.Lang):
		bad.add("lang %.40q is not known: %s (x-… is for commands that the operator of the runner has configured)", d.Lang, port.Suggest(d.Lang, Languages))
	}
	if strings.TrimSpace(d.Body) == "" {
		bad.add("body is missing: it is what runs for each payload")
	}
	if d.Lang == HTTP {
		if u, err := url.Parse(d.Body); d.Body != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			bad.add("body %.80q is not a URL: write it like https://example.org/hook", d.Body)
		}
		if d.Before+d.BeforeEach+d.AfterEach != "" {
			bad.add("before, beforeEach and afterEach are code, which a handler of lang http has not")
		}
	}
	if !eidRE.MatchString(d.EID) {
		bad.add("eid %.80q: use up to 64 of A-Z, a-z, 0-9, _, . and -", d.EID)
	}
	for _, code := range []string{d.Before, d.BeforeEach, d.Body, d.AfterEach} {
		if strings.ContainsRune(code, 0) {
			bad.add("the code has a byte 0")
			break
		}
	}
	d.Options.validate(d.Lang, &bad)
	return bad.error()
}

// leastMemory is the least limit of memory: with less what starts the program may end before it has.
const leastMemory = 128 << 20

func (o *Options) validate(lang string, bad *problems) {
	span := func(name string, d Duration, most time.Duration) {
		if d < 0 || time.Duration(d) > most {
			bad.add("options.%s %s: use a time up to %s", name, time.Duration(d), most)
		}
	}
	count := func(name string, n, most int64) {
		if n < 0 || n > most {
			bad.add("options.%s %d: use 1 to %d", name, n, most)
		}
	}
	span("timeout", o.Timeout, MaxTime)
	span("total", o.Total, MaxTotal)
	span("delay", o.Delay, MaxTime)
	span("maxDelay", o.MaxDelay, MaxTime)
	span("idle", o.Idle, MaxTime)
	count("tries", int64(o.Tries), 1_000_000)
	count("batch", int64(o.Batch), MaxBatch)
	count("recycle", int64(o.Recycle), maxRecycle)
	count("memory", o.Memory, MaxMemory)
	if o.Memory > 0 && o.Memory < leastMemory {
		bad.add("options.memory %d: use at least %d, which a process needs to start", o.Memory, leastMemory)
	}
	count("disk", o.Disk, MaxMemory)
	count("output", o.Output, MaxOutput)
	count("processes", int64(o.Processes), MaxProcesses)
	count("secrets", int64(len(o.Secrets)), MaxSecrets)
	for _, name := range o.Secrets {
		if !envRE.MatchString(name) {
			bad.add("options.secrets: %.40q cannot be the name of a variable", name)
		}
	}
	for name := range o.Env {
		if !envRE.MatchString(name) || strings.ContainsRune(o.Env[name], 0) {
			bad.add("options.env: %.40q cannot be a variable", name)
		}
	}
	if o.Then != "" {
		if err := job.CheckName("options.then: type", o.Then); err != nil {
			bad.add("%s", err)
		}
	}
	for code, status := range o.Exits {
		if !exitRE.MatchString(code) || CodeOf(status) == "" {
			bad.add("options.exits: %.20q: %d: exit codes are 0 to 255, statuses 100-299 and 400-599", code, status)
		}
	}
	if len(o.Exits) > 0 && (lang == Node || lang == Python || lang == HTTP) {
		bad.add("options.exits are for sh and commands: %s says its status itself", lang)
	}
}

// problems collects what is wrong.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p problems) error() error {
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	return fmt.Errorf("%w of a handler: %w", job.ErrValue, errors.New(strings.Join(p, "; ")))
}

// WithDefaults returns the options with the defaults in place of zero values.
func (d *Definition) WithDefaults() Options {
	o := d.Options
	or := func(v *Duration, d time.Duration) {
		if *v == 0 {
			*v = Duration(d)
		}
	}
	or(&o.Timeout, time.Minute)
	or(&o.Total, 6*time.Hour)
	or(&o.Delay, time.Second)
	or(&o.MaxDelay, 5*time.Minute)
	or(&o.Idle, 5*time.Minute)
	many := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	many(&o.Batch, 100)
	if d.Lang == HTTP && d.Options.Batch == 0 {
		o.Batch = 1
	}
	many(&o.Recycle, 100_000)
	many(&o.Processes, 64)
	size := func(v *int64, n int64) {
		if *v == 0 {
			*v = n
		}
	}
	size(&o.Memory, 512<<20)
	size(&o.Disk, 64<<20)
	size(&o.Output, 1<<20)
	return o
}
