// Command approval has people approve what others want to spend. Each request is a durable
// job that sleeps until somebody decides, for weeks if need be and whatever becomes of the
// processes that serve it; it reminds people, and expires.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const usage = `File requests to spend money, and decide on them.

  approval demo                                   play a story of some seconds, without Redis
  approval work                                   serve requests, and tell people what to do
  approval request -by Ada 900 a chair            file a request
  approval decide -by Grace 1 yes                 decide on it: yes or no
  approval list                                   list all requests

Nobody is asked for up to 50, and above 1000 two people must agree. Other programs decide by
writing {"By": "Grace", "Yes": true} to the port decisions of the request's job.

`

func main() {
	logging.Disable() // the Redis library prints what it also returns as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "approval:", err)
		os.Exit(1)
	}
}

// run does what the arguments say.
func run(ctx context.Context, args []string, w io.Writer) error {
	var r Request
	flags := flag.NewFlagSet("approval", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the requests, else $WEIR_REDIS_URL")
	flags.StringVar(&r.By, "by", "", "`NAME` of who asks or decides")
	flags.DurationVar(&r.Remind, "remind", 24*time.Hour, "remind people after this `TIME`, again and again")
	flags.DurationVar(&r.Expire, "expire", 14*24*time.Hour, "give the request up after this `TIME`")
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	err := flags.Parse(args)
	args = flags.Args()
	switch {
	case command == "help" || command == "-h" || command == "--help" || errors.Is(err, flag.ErrHelp):
		fmt.Fprint(w, usage)
		flags.SetOutput(w)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w; see approval help", err)
	case command != "demo" && *url == "":
		return errors.New("requests need a Redis that outlives the program: give -redis URL behind the command")
	case command == "demo":
		*url = ""
	case r.Remind < time.Millisecond || r.Expire < time.Millisecond:
		return errors.New("-remind and -expire are at least 1ms")
	}
	d, err := openDesk(ctx, *url, func(text string) { fmt.Fprintln(w, text) })
	if err != nil {
		return err
	}
	defer d.store.Close()
	switch {
	case command == "demo":
		return d.engine.RunWhile(ctx, func(ctx context.Context) error { return d.demo(ctx, w) })
	case command == "work":
		fmt.Fprintln(w, "serving requests; stop with ctrl-c")
		return d.engine.Run(ctx)
	case command == "list":
		return d.list(ctx, w)
	case command == "request" && r.By != "" && len(args) > 1:
		if r.Amount, err = strconv.Atoi(args[0]); err != nil || r.Amount < 0 {
			return fmt.Errorf("%q is no amount; write it like 900", args[0])
		}
		r.Purpose = strings.Join(args[1:], " ")
		return d.request(ctx, w, &r)
	case command == "decide" && r.By != "" && len(args) == 2 && (args[1] == "yes" || args[1] == "no"):
		return d.decide(ctx, args[0], Decision{r.By, args[1] == "yes"})
	}
	return errors.New("say what to do, as in: approval request -by Ada 900 a chair; see approval help")
}

// desk is where requests are filed, from outside of runs.
type desk struct {
	store  *redisstore.Store
	engine *worker.Engine
	client *job.Client
	top    *job.Handle
}

// openDesk opens the desk of a Redis, a new one if there is none yet.
func openDesk(ctx context.Context, url string, tell func(string)) (*desk, error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return nil, err
	}
	d := &desk{store: store, client: job.NewClient(store)}
	d.engine, err = worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Desk{}, &Request{tell: tell}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = d.engine.Register(ctx) // so that requests can be filed before anybody serves
	}
	if err == nil {
		d.top, err = d.client.Start(ctx, job.Single(&Desk{}, ""), job.Alias("approvals"))
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return d, nil
}

// request files a request under the next number.
func (d *desk) request(ctx context.Context, w io.Writer, r *Request) error {
	children, err := d.top.Children(ctx)
	if err != nil {
		return err
	}
	args := map[string]any{"Amount": r.Amount, "Purpose": r.Purpose, "By": r.By, "Remind": r.Remind, "Expire": r.Expire}
	for n := len(children) + 1; ; n++ {
		_, err := d.client.Create(ctx, job.New{Type: "Request", Args: args, Parent: d.top.ID(), Name: strconv.Itoa(n), By: r.By})
		switch {
		case errors.Is(err, job.ErrExists): // somebody else was faster
		case err != nil:
			return err
		default:
			fmt.Fprintf(w, "filed request %d\n", n)
			return nil
		}
	}
}

// decide sends a decision to a request.
func (d *desk) decide(ctx context.Context, name string, v Decision) error {
	h, err := d.top.Child(ctx, name)
	if errors.Is(err, job.ErrNotFound) {
		return fmt.Errorf("there is no request %q; see approval list", name)
	} else if err != nil {
		return err
	}
	if p, err := progressOf(ctx, h); err != nil || p.Outcome != "" {
		return cmp.Or(err, fmt.Errorf("request %s was %s already", name, p.Outcome))
	}
	return h.Write(ctx, "decisions", v)
}

func progressOf(ctx context.Context, h *job.Handle) (p progress, err error) {
	state, err := h.State(ctx, "progress")
	if raw := state["progress"]; err == nil && raw != nil {
		err = json.Unmarshal(raw, &p)
	}
	return p, err
}

// list writes all requests, in the order in which they were filed.
func (d *desk) list(ctx context.Context, w io.Writer) error {
	tree, err := d.top.Tree(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tAMOUNT\tBY\tPURPOSE\tSTATE")
	for _, i := range tree[1:] {
		var r Request
		h, err := d.client.Find(ctx, string(i.ID))
		if err = cmp.Or(err, json.Unmarshal(i.Args, &r)); err != nil {
			return err
		}
		p, err := progressOf(ctx, h)
		if err != nil {
			return err
		}
		state := cmp.Or(p.Outcome, fmt.Sprintf("%d of %d agreed", len(p.Yes), r.needed()))
		fmt.Fprintf(table, "%s\t%d\t%q\t%q\t%s\n", i.Name, r.Amount, r.By, r.Purpose, state)
	}
	return table.Flush()
}

// demo plays a story in which a day takes a second.
func (d *desk) demo(ctx context.Context, w io.Writer) error {
	for _, r := range []Request{
		{Amount: 12, Purpose: "pencils", By: "Ada"},
		{Amount: 900, Purpose: "a chair", By: "Ada"},
		{Amount: 25_000, Purpose: "a boat", By: "Bob"},
		{Amount: 99, Purpose: "what nobody cares for", By: "Bob"},
	} {
		r.Remind, r.Expire = time.Second, 3500*time.Millisecond
		if err := d.request(ctx, w, &r); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		name string
		Decision
	}{{"2", Decision{"Grace", true}}, {"3", Decision{"Bob", true}}, {"3", Decision{"Grace", true}}, {"3", Decision{"Edsger", true}}} {
		time.Sleep(time.Second / 2)
		fmt.Fprintf(w, "> approval decide -by %s %s yes\n", v.By, v.name)
		if err := d.decide(ctx, v.name, v.Decision); err != nil {
			return err
		}
	}
	last, err := d.top.Child(ctx, "4")
	if err == nil {
		_, err = last.Wait(ctx)
	}
	return cmp.Or(err, d.list(ctx, w))
}
