package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/weirworks/weir/worker"
)

// Limits of expressions. They keep an expression that got out of hand from taking the
// engine with it; they are no sandbox for authors who mean harm.
const (
	maxSource = 16 << 10 // bytes of text
	maxNodes  = 1000     // of its syntax tree
	maxMemory = 1 << 20  // elements of lists and maps that one evaluation makes
	maxSteps  = 1 << 20  // rounds of loops in one evaluation
)

// scope says which variables an expression has.
type scope int

const (
	scopeItem   scope = iota // it
	scopeReduce              // it and acc
)

// itemEnv is what expressions see.
type itemEnv struct {
	It   any                       `expr:"it"`
	Now  func() time.Time          `expr:"now"`
	Step func(...any) (any, error) `expr:"__step"`
}

// reduceEnv is what expressions with an accumulator see.
type reduceEnv struct {
	Acc any `expr:"acc"`
	itemEnv
}

// expression is a compiled expression in one run.
type expression struct {
	source string
	prog   *vm.Program
	vm     vm.VM
	ctx    context.Context //nolint:containedctx // the run's own, for its loops to notice the end
	steps  int
	env    reduceEnv
	scope  scope
}

// newExpression compiles an expression, or finds it compiled, for one run.
func newExpression(ctx context.Context, run *worker.Run, source string, sc scope) (*expression, error) {
	prog, err := compile(source, sc)
	if err != nil {
		return nil, err
	}
	e := &expression{source: source, prog: prog, ctx: ctx, scope: sc}
	e.vm.MemoryBudget = maxMemory
	e.env.Now, e.env.Step = run.Now, e.step
	return e, nil
}

// eval evaluates the expression for one value.
func (e *expression) eval(it any) (any, error) { return e.reduce(nil, it) }

// reduce evaluates the expression for an accumulator and a value.
func (e *expression) reduce(acc, it any) (any, error) {
	e.steps, e.env.Acc, e.env.It = 0, acc, it
	var env any = &e.env
	if e.scope == scopeItem {
		env = &e.env.itemEnv
	}
	v, err := e.vm.Run(e.prog, env)
	if err != nil {
		return nil, exprError(e.source, err)
	}
	return v, nil
}

// step is called with the value of each round of a loop and of each +.
func (e *expression) step(args ...any) (any, error) {
	if e.steps++; e.steps > maxSteps {
		return nil, fmt.Errorf("more than %d steps", maxSteps)
	}
	if e.steps%1024 == 0 && e.ctx.Err() != nil {
		return nil, e.ctx.Err()
	}
	if s, ok := args[0].(string); ok && len(s) > maxResult {
		return nil, fmt.Errorf("a text of more than %d bytes", maxResult)
	}
	return args[0], nil
}

// meter makes expressions call step.
type meter struct{}

// Visit implements ast.Visitor.
func (meter) Visit(node *ast.Node) {
	stepped := func(n ast.Node) ast.Node {
		callee := &ast.IdentifierNode{Value: "__step"}
		callee.SetLocation(n.Location())
		return &ast.CallNode{Callee: callee, Arguments: []ast.Node{n}}
	}
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		inner := n.Node
		ast.Patch(&inner, stepped(n.Node))
		n.Node = inner
	case *ast.BinaryNode:
		if n.Operator == "+" {
			ast.Patch(node, stepped(n))
		}
	}
}

// programs are the expressions compiled of late: compiling takes longer than most runs.
var programs = struct {
	sync.Mutex
	known map[string]*vm.Program
}{known: map[string]*vm.Program{}}

const maxPrograms = 512

// compile compiles an expression. The error tells where it is wrong.
func compile(source string, sc scope) (*vm.Program, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("the expression is missing")
	}
	if len(source) > maxSource {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(source), maxSource)
	}
	key := fmt.Sprint(int(sc)) + source
	programs.Lock()
	prog := programs.known[key]
	programs.Unlock()
	if prog != nil {
		return prog, nil
	}
	options := slices.Concat(functions, []expr.Option{expr.MaxNodes(maxNodes), expr.Env(itemEnv{})})
	if sc == scopeReduce {
		options[len(options)-1] = expr.Env(reduceEnv{})
	}
	// Once for its errors, and once with the meter, which hides the types of loops.
	_, err := expr.Compile(source, options...)
	if err == nil {
		prog, err = expr.Compile(source, append(options, expr.MaxNodes(4*maxNodes), expr.Patch(meter{}))...)
	}
	if err != nil {
		return nil, exprError(source, err)
	}
	programs.Lock()
	defer programs.Unlock()
	if len(programs.known) >= maxPrograms {
		clear(programs.known)
	}
	programs.known[key] = prog
	return prog, nil
}

// exprError says on one line what is wrong with an expression, and where.
func exprError(source string, err error) error {
	if len(source) > 60 {
		source = source[:60] + "…"
	}
	var f *file.Error
	if errors.As(err, &f) {
		return fmt.Errorf("expression %q: %s (line %d, column %d)", strings.ToValidUTF8(source, "…"), f.Message, f.Line, f.Column+1)
	}
	return fmt.Errorf("expression %q: %w", strings.ToValidUTF8(source, "…"), err)
}

// functions replace builtin ones: those that round numbers, that depend on the order of
// a Go map, or whose result can be much larger than their arguments.
var functions = []expr.Option{
	expr.Function("fromJSON", func(args ...any) (any, error) {
		return decode(json.RawMessage(args[0].(string))) //nolint:forcetypeassert // by its type
	}, new(func(string) any)),
	expr.Function("toJSON", func(args ...any) (any, error) {
		raw, err := encode(args[0])
		return string(raw), err
	}, new(func(any) string)),
	expr.Function("keys", func(args ...any) (any, error) {
		return entries(args[0], func(k string, _ any) any { return k })
	}, new(func(any) []any)),
	expr.Function("values", func(args ...any) (any, error) {
		return entries(args[0], func(_ string, v any) any { return v })
	}, new(func(any) []any)),
	expr.Function("toPairs", func(args ...any) (any, error) {
		return entries(args[0], func(k string, v any) any { return []any{k, v} })
	}, new(func(any) []any)),
	expr.Function("repeat", repeat, new(func(string, int) string)),
	expr.Function("replace", replace, new(func(string, string, string) string), new(func(string, string, string, int) string)),
	expr.Function("join", join, new(func([]any) string), new(func([]any, string) string), new(func([]string, string) string), new(func([]string) string)),
}

// entries lists an object by its keys, sorted.
func entries(v any, entry func(string, any) any) (any, error) {
	left := maxResult
	v, err := plain(v, &left)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", kindOf(v))
	}
	list := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, entry(k, m[k]))
	}
	return list, nil
}

func repeat(args ...any) (any, error) {
	s, okText := args[0].(string)
	n, okCount := args[1].(int)
	if !okText || !okCount || n < 0 {
		return nil, errors.New("repeat needs a text and how often")
	}
	if len(s) > 0 && n > maxResult/len(s) {
		return nil, errResult
	}
	return strings.Repeat(s, n), nil
}

func replace(args ...any) (any, error) {
	var s [3]string
	for i := range s {
		var ok bool
		if s[i], ok = args[i].(string); !ok {
			return nil, fmt.Errorf("replace needs texts, not %s", kindOf(args[i]))
		}
	}
	n := -1
	if len(args) > 3 {
		n, _ = args[3].(int)
	}
	if many := strings.Count(s[0], s[1]); len(s[0])+many*len(s[2]) > maxResult {
		return nil, errResult
	}
	return strings.Replace(s[0], s[1], s[2], n), nil
}

func join(args ...any) (any, error) {
	glue := ""
	if len(args) > 1 {
		glue, _ = args[1].(string)
	}
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice {
		return nil, fmt.Errorf("join needs a list, not %s", kindOf(args[0]))
	}
	var b strings.Builder
	for i := range list.Len() {
		s, ok := list.Index(i).Interface().(string)
		if !ok {
			return nil, fmt.Errorf("join needs texts, not %s", kindOf(list.Index(i).Interface()))
		}
		if i > 0 {
			b.WriteString(glue)
		}
		if b.WriteString(s); b.Len() > maxResult {
			return nil, errResult
		}
	}
	return b.String(), nil
}
