package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/encrypt"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
)

// Exit codes.
const (
	exitError    = 1 // the store could not do it
	exitUsage    = 2 // the command line, or what it names, is wrong
	exitNotFound = 3 // no such job
	exitFailed   = 4 // the job failed or was terminated
	exitTimeout  = 5 // it took too long
	exitRefused  = 6 // the job's status, or that of something else, does not allow it

	exitUnreachable = 7 // Redis, or the server

	exitInterrupted = 130 // a signal ended it before it was done
)

// settings are the flags that every command shares.
type settings struct {
	redis     string
	server    string
	tokenFile string
	namespace string
	keys      string
	context   string
	output    string

	command *cobra.Command // that is run
	stderr  func() io.Writer
	warned  bool // of a file of contexts that others may read
}

// negative is what pflag says of -1, and of other words that begin like a number below zero.
var negative = regexp.MustCompile(`^unknown shorthand flag: '\d' in (-.*)$`)

// noNegative is the annotation of a command that takes no number below zero: what to type in place of one.
const noNegative = "no negative numbers"

// flagError is what is said of a flag that cannot be.
func flagError(c *cobra.Command, err error) error {
	if m := negative.FindStringSubmatch(err.Error()); m != nil {
		if c.Annotations[noNegative] != "" {
			return usageError{fmt.Errorf("%s: %s", m[1], c.Annotations[noNegative])}
		}
		err = fmt.Errorf("%s is read as a flag: write it behind --, as in %s … -- %s", m[1], c.CommandPath(), m[1])
	}
	var number *strconv.NumError
	if errors.As(err, &number) {
		what := "use a whole number"
		switch {
		case errors.Is(number, strconv.ErrRange):
			what = "the number is too large"
		case number.Func == "ParseBool":
			what = "use true or false"
		case number.Func == "ParseFloat":
			what = "use a number"
		}
		err = errors.New(strings.TrimSuffix(err.Error(), number.Error()) + what)
	}
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
		var flags []string
		c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		hint := port.Suggest("--"+unknown.GetSpecifiedName(), flags)
		if strings.HasPrefix(hint, "use") {
			hint = otherFlag(unknown.GetSpecifiedName(), flags, "see "+c.CommandPath()+" --help")
		}
		err = fmt.Errorf("%w: %s", err, hint)
	}
	return usageError{err}
}

// usageError is a wrong command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// timeoutError says that --timeout is over.
type timeoutError struct {
	after time.Duration
	goal  string // what did not come; empty is completed
	doing string // what came instead; empty if that is not known
}

func (e timeoutError) Error() string {
	text := fmt.Sprintf("not %s after %s", cmp.Or(e.goal, string(statemachine.Completed)), e.after)
	if e.doing != "" {
		text += ": " + e.doing
	}
	return text
}

// errInterrupted is what is left of an error that comes from a signal.
var errInterrupted = errors.New("interrupted")

// interrupted is errInterrupted, and what was sent until then, if an error comes from the end
// of ctx by a signal; else it is the error.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	var sent sendError
	if errors.As(err, &sent) {
		return sendError{errInterrupted, sent.sent}
	}
	return errInterrupted
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var wish term.Wish
	root := newRoot(&wish)
	root.SetArgs(args)
	root.SetOut(term.NewScreen(stdout, &wish))
	root.SetErr(term.NewScreen(stderr, &wish))
	root.InitDefaultCompletionCmd() // which writes to the output that is set
	withSubcommands(root)
	wrongHelp := withHelp(root)
	c, err := root.ExecuteContextC(ctx)
	err = cmp.Or(interrupted(ctx, err), wrongHelp())
	if err == nil || errors.Is(err, term.ErrClosed) { // | head has seen enough
		return 0
	}
	switch output := c.Flags().Lookup("output"); {
	case output != nil && output.Changed && strings.HasPrefix(output.Value.String(), "json"), asksJSON(args):
		_ = encode(stderr, failureOf(err), "")
	case errors.As(err, new(fileError)):
		for line := range strings.Lines(err.Error()) { // a line for each problem, each with its place
			_, _ = fmt.Fprintln(stderr, term.Clean(strings.TrimSuffix(line, "\n")))
		}
	default:
		_, _ = fmt.Fprintln(stderr, "weir:", oneLine(err))
	}
	return exitCode(err)
}

// asksJSON tells whether a command line asks for JSON, also one that was refused before that was read, or of a command that
// prints nothing.
func asksJSON(args []string) bool {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value, ok := strings.CutPrefix(arg, "--output")
		if !ok && !strings.HasPrefix(arg, "--") {
			value, ok = strings.CutPrefix(arg, "-o")
		}
		if value == "" && i+1 < len(args) {
			value = args[i+1]
		}
		if ok && strings.HasPrefix(strings.TrimPrefix(value, "="), "json") {
			return true
		}
	}
	return false
}

// failure is an error as commands print it with -o json.
type failure struct {
	Error struct {
		Code    string   `json:"code"` // the kind of error, as the HTTP API has it
		Exit    int      `json:"exit"`
		Message string   `json:"message"`
		Lines   []string `json:"lines,omitempty"` // each thing that is wrong in a file, with its place
	} `json:"error"`
}

func failureOf(err error) (f failure) {
	f.Error.Code, f.Error.Exit, f.Error.Message = api.KindOf(err).Code, exitCode(err), oneLine(err)
	switch f.Error.Exit {
	case exitInterrupted:
		f.Error.Code = "interrupted"
	case exitTimeout:
		f.Error.Code = "timeout"
	case exitUsage:
		f.Error.Code = "usage"
	}
	if errors.As(err, new(fileError)) {
		f.Error.Lines = strings.Split(term.Clean(strings.TrimSuffix(err.Error(), "\n")), "\n")
	}
	return f
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(timeoutError)):
		return exitTimeout
	case api.KindOf(err).Exit != exitError:
		return api.KindOf(err).Exit
	case errors.As(err, new(usageError)), errors.As(err, new(fileError)):
		return exitUsage
	}
	return exitError
}

// newRoot returns the command line; wish becomes what its flags say of the looks.
func newRoot(wish *term.Wish) *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:   "weir",
		Short: "Run graphs of durable dataflow jobs, and look at them",
		Long: `Run graphs of durable dataflow jobs, and look at them.

JOB stands for an ID, the beginning of one (4 characters or more), or an alias; @latest is the
newest. Names of children may follow, as in shop/pay/t38. Exit codes:
0 all went well, 1 it could not be done, 2 the command line or a file is wrong, 3 there is
no such job, 4 the job failed or was terminated, 5 it took too long, 6 refused as things
are now, 7 Redis or the server cannot be reached, 8 the token for the server does not permit
it, 130 interrupted before it was done. With -o json an error is JSON, too: the last line of
standard error.`,
		Example:       "  weir run logs.yaml --in lines=@access.log --text\n  weir tree album-2026 --redis redis://localhost:6379",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	flags := root.PersistentFlags()
	// The environment is no default here: help would print the password in it.
	flags.StringVar(&s.redis, "redis", "", "`URL` of the Redis that holds the jobs (default $WEIR_REDIS_URL)")
	flags.StringVar(&s.server, "server", "", "`URL` of a weir serve to work through, in place of a Redis (default $WEIR_SERVER)")
	flags.StringVar(&s.tokenFile, "token-file", "", "`FILE` with the token for the server (default $WEIR_TOKEN_FILE, or the token in $WEIR_TOKEN)")
	flags.StringVar(&s.namespace, "namespace", "", "namespace of the jobs (default $WEIR_NAMESPACE, or main)")
	flags.StringVar(&s.keys, "keys", "", "`FILE` of the keys that encrypt what jobs hold (default $WEIR_KEYS)")
	flags.StringVar(&s.context, "context", "", "`NAME` of the context with all of these (default $WEIR_CONTEXT, or the current one)")
	addStyle(root, wish)
	s.stderr = root.ErrOrStderr
	root.PersistentPreRun = func(c *cobra.Command, _ []string) { s.command = c; s.paint(wish) }
	_ = root.RegisterFlagCompletionFunc("context", contextWords) // there is such a flag
	root.SetFlagErrorFunc(flagError)
	for group, commands := range map[string][]*cobra.Command{
		"look": {
			newJobs(&s), s.complete(newShow(&s), jobWords), s.complete(newTree(&s), jobWords), s.complete(newWhy(&s), jobWords), s.complete(newTop(&s), jobWords),
			s.complete(newPorts(&s), jobWords), s.complete(newPeek(&s), jobWords, portWords), s.complete(newLog(&s), jobWords),
			s.complete(newTrace(&s), jobWords, portWords), newTypes(&s),
			newQueues(&s), newLimits(&s), newWorkers(&s), newStats(&s), newAudit(&s), newDoctor(&s), newHealthcheck(&s), newNext(),
		},
		"act": {
			s.complete(newCreate(&s), typeWords), s.complete(newSend(&s), jobWords, portWords), newPublish(&s), s.complete(newRead(&s), jobWords, portWords),
			s.completeFile(newRun(&s)),
			s.complete(newRetry(&s), jobWords), s.completeRest(newFail(&s), jobWords), s.completeRest(newTerminate(&s), jobWords), s.completeRest(newDelete(&s), jobWords),
			s.completeRestFile(newPatch(&s)), s.complete(newWait(&s), jobWords), newState(&s), s.complete(newAlias(&s), jobWords),
			s.complete(newAdopt(&s), jobWords, jobWords), s.complete(newDisown(&s), jobWords, childWords),
			newDead(&s), newTrigger(&s), newHandler(&s), s.complete(newPriority(&s), jobWords), newQueue(&s), s.complete(newLock(&s), jobWords), s.complete(newUnlock(&s), jobWords),
		},
		"graph":  {newInit(), newGraph(&s), newCheck(&s), newComponents()},
		"serve":  {newWorker(&s), newServe(&s), newDev(&s), newDemo(&s)},
		"set up": {newContext(&s), newToken(&s), newACL(&s), newRetention(&s), newMigrate(&s)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddGroup(&cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "act", Title: "Act:"}, &cobra.Group{ID: "graph", Title: "Graphs:"}, &cobra.Group{ID: "serve", Title: "Serve:"}, &cobra.Group{ID: "set up", Title: "Set up:"})
	root.AddCommand(newVersion(&s), newCLISchema(), newMan())
	return root
}

// reach opens the store that the flags name: in a Redis, or behind a server.
func (s *settings) reach(ctx context.Context) (storecall.Store, error) {
	e, err := s.resolve()
	if err != nil {
		return nil, err
	}
	if e.server.Value == "" {
		return s.open(ctx)
	}
	token, err := e.readToken()
	if err != nil {
		return nil, err
	}
	store, err := httpstore.Open(ctx, httpstore.Config{URL: e.server.Value, Token: token})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.server.From, err)
	}
	switch {
	case e.namespace.From != "default" && e.namespace.Value != store.Namespace():
		err = usageError{fmt.Errorf("%s is %s, and the server %s works with namespace %s for this token: use a token of that tenant, or leave the namespace out", e.namespace.From, e.namespace.Value, store.Where(), store.Namespace())}
	case s.keys != "":
		err = usageError{errors.New("--keys is for a Redis: a server has the keys itself")}
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// open opens the store in the Redis that the flags name.
func (s *settings) open(ctx context.Context) (*redisstore.Store, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, cfg)
}

// besideOnly says of commands why no server does for others what they do.
var besideOnly = map[string]string{
	"worker":  "it runs jobs, so it reads and writes that Redis all the time; a worker without access to it leases runs over HTTP, in any language: docs/remote-workers.md",
	"serve":   "it is a server of that Redis itself",
	"migrate": "programs that use the Redis are to be stopped first, a server, too",
	"acl":     "its rules are for users of Redis; what a client of a server may do is in its token: weir token create --role",
}

// notThroughServer refuses what is done beside Redis alone.
func (s *settings) notThroughServer(server setting) error {
	name, why := "this", ""
	if s.command != nil {
		name = s.command.CommandPath()
		if reason := besideOnly[s.command.Name()]; reason != "" {
			why = ": " + reason
		}
	}
	return usageError{fmt.Errorf("%s is done beside Redis, not through a server (%s): use --redis URL%s", name, server.From, why)}
}

// config says which store the flags name.
func (s *settings) config() (redisstore.Config, error) {
	cfg, err := s.anyConfig()
	if err == nil && cfg.URL == "" {
		if e, err := s.resolve(); err == nil && e.server.Value != "" {
			return cfg, s.notThroughServer(e.server)
		}
		err = usageError{errors.New("no Redis given: use --redis URL or set WEIR_REDIS_URL, like redis://localhost:6379, or --server URL of a weir serve, or keep either with weir context set")}
	}
	return cfg, err
}

// anyConfig is config, without a URL if no Redis is given.
func (s *settings) anyConfig() (redisstore.Config, error) {
	e, err := s.resolve()
	if err != nil {
		return redisstore.Config{}, err
	}
	cfg := redisstore.Config{URL: e.redis.Value, Embedded: embedded.Start, Namespace: e.namespace.Value}
	if e.keys.Value != "" {
		keys, err := encrypt.ReadKeys(e.keys.Value)
		if err != nil {
			return redisstore.Config{}, fmt.Errorf("%s: %w", e.keys.From, err)
		}
		cfg.Codec = keys
	}
	return cfg, nil
}

// usage makes the errors of an argument check count as wrong command lines.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			if len(args) > 0 && c.HasAvailableSubCommands() {
				return subcommand(c, args)
			}
			given := counted(len(args), "word") + " given"
			if len(args) == 1 {
				given = fmt.Sprintf("%.80q is given", args[0])
			}
			return usageError{fmt.Errorf("%s: write it as %s; see %s --help", given, strings.TrimSuffix(c.UseLine(), " [flags]"), c.CommandPath())}
		}
		return nil
	}
}
