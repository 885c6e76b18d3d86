// Package component has ready types of worker: sources, transformations, joins, windows,
// sinks. An engine gets them all with
//
//	worker.Config{Workers: component.All(component.Policy{})}
//
// and jobs of them are made like those of any worker, in Go
//
//	big := graph.Add(g, "big", &component.Filter{Expr: "it.size > 1000"})
//
// or by the name of their type. These are the types, with their In and Out ports and their
// parameters; * stands for ports that a parameter names:
//
//	batch           in > out          size max_wait
//	collect         in > out          max_items
//	cron            - > out           schedule zone count missed
//	debounce        in > out          wait max_wait keep
//	dedupe          in > out err      key capacity on_error
//	delay           in > out          by
//	each            in > out err      type args queue input output parallel order on_error
//	emit            - > out           items
//	every           - > out           every immediately count missed
//	exec            in > out err      program args env input output timeout on_error
//	filter          in > out err      expr on_error
//	flat_map        in > out err      expr on_error
//	gate            in open > out     opened
//	http_request    in > out err      method url headers body timeout max_body max_redirects strict on_error
//	join            left right > out  left_key right_key kind max_rows
//	map             in > out err      expr on_error
//	merge           in * > out        from
//	merge_ordered   * > out           from
//	merge_priority  * > out           from
//	merge_sorted    * > out           from by descending
//	read_file       path > out        path format no_header comma
//	reduce          in > out err      expr seed key emit max_keys on_error
//	route           in > err *        cases default all on_error
//	tee             in > *            to
//	throttle        in > out          rate per drop
//	ticker          - > out           every count immediately missed
//	window          in > out          every slide count step max_items
//	write_file      in > -            path format mode columns no_header comma
//	zip             * > out           from rest
//
// Catalogue tells the same to programs, with a line about each.
//
// # Streams
//
// Messages are any JSON. What a component passes on unchanged keeps its text, so numbers
// of any size survive. Every component keeps the order of each edge, unless its
// documentation says otherwise. When the In ports that are wired are at their end and
// drained, the job completes and its Out ports are at their end too. Components that hold
// something back, such as Batch, sleep until then; on an In port that nobody is wired to,
// its end is when somebody closes it.
//
// A run takes some 1,000 messages or 2 MiB and leaves the rest to the next. All
// components do what they do exactly once, except for the effects of WriteFile, HTTPRequest
// and Exec outside of Weir: these tell in their documentation what a crash may repeat.
//
// # Time
//
// Time is the store's, in milliseconds, so that tests with weirtest decide about it. What
// waits for a time waits in the state, over restarts, and goes on with the first run after
// it: engines look for such runs once a second, so a job may be that late. Nothing is ever
// early. A Throttle per 100ms therefore passes less than it may; prefer seconds.
//
// # Parameters
//
// Every component has a method Validate, which names all bad parameters before anything
// runs; a job with bad ones fails in its first run with the same error. Parameters on_error
// say what becomes of a message that cannot be worked on: fail (the job fails, the message
// stays), skip, or err (it goes to the Out port err with the error). Out ports that are
// wired to nobody keep their messages until somebody reads them.
//
// # Expressions
//
// Expressions are those of github.com/expr-lang/expr, over the message it. Integers that
// fit into 64 bits are exact; arithmetic with them wraps around as in Go, and / gives
// floating point. Larger integers can be compared with themselves, turned into texts and
// passed on, and arithmetic with them is an error: nothing is rounded silently. Other
// numbers are 64-bit floating point. A field that is not there is nil. now() is when the
// run began, by the store's clock; keys, values and toPairs go by sorted keys. fromJSON
// and toJSON treat numbers as messages are treated.
//
// Expressions are limited in the size of their text, in what they allocate, in the rounds
// of their loops and in the size of results. That protects an engine from accidents, not
// from authors who mean harm: let only people write them whom you trust with its CPU.
//
// # Policy
//
// What jobs may do outside of Weir is decided by who runs the engine, in the Policy given
// to All, and not by parameters. By default files are below the current directory, HTTP
// goes to public addresses only, and no programs are run. A component that is registered
// without All, such as &ReadFile{}, has that default.
package component
