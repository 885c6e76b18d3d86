// Command approval has people approve what others want to spend. Each request is a durable job that sleeps until somebody
// decides, for weeks if need be and whatever becomes of the processes that serve it; it reminds people, and expires.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const usage = `File requests to spend money, and decide on them. Nobody is asked for up to 50, and above 1000 two people must agree.

  approval demo                      play a story of some seconds, without Redis
  approval work                      serve requests, and tell people what to do
  approval request Ada chair 900     file a request
  approval decide Grace chair yes    decide on it: yes or no
  approval list                      list all requests`

func main() {
	d := desk{w: os.Stdout, remind: 24 * time.Hour, expire: 14 * 24 * time.Hour}
	flag.StringVar(&d.url, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the requests, else $WEIR_REDIS_URL")
	flag.Usage = func() { fmt.Fprintf(flag.CommandLine.Output(), "%s\n\n", usage); flag.PrintDefaults() }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := d.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "approval:", err)
		os.Exit(1)
	}
}

// desk is where requests are filed and decided on, from outside of runs.
type desk struct {
	url            string        // of the Redis
	remind, expire time.Duration // of new requests
	w              io.Writer
	client         *client.Client
}

// run opens the desk and does what the arguments say.
func (d *desk) run(ctx context.Context, args []string) error {
	command := strings.Join(args[:min(len(args), 1)], "")
	switch {
	case command == "demo": // a day takes a second
		d.url, d.remind, d.expire = "", time.Second, 3500*time.Millisecond
	case d.url == "":
		return errors.New("requests need a Redis that outlives the program: give -redis URL before the command")
	}
	store, err := redisstore.Open(ctx, redisstore.Config{URL: d.url, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	d.client = client.New(store)
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Request{w: d.w}}, Logger: slog.New(slog.DiscardHandler)})
	switch {
	case err != nil:
		return err
	case command == "demo":
		return engine.RunWhile(ctx, d.demo)
	case command == "work":
		fmt.Fprintln(d.w, "serving requests; stop with ctrl-c")
		return engine.Run(ctx)
	}
	return d.do(ctx, args)
}

// do files a request, decides on one, or lists all.
func (d *desk) do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		return d.list(ctx)
	case len(args) == 4 && args[0] == "request":
		return d.request(ctx, args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "decide" && (args[3] == "yes" || args[3] == "no"):
		return d.decide(ctx, args[2], Decision{args[1], args[3] == "yes"})
	}
	return errors.New("say what to do, as in: approval request Ada chair 900; see approval -h")
}

// request files a request. The same one twice is one; another one of that name is refused.
func (d *desk) request(ctx context.Context, by, name, amount string) error {
	n, err := strconv.Atoi(amount)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no amount; write it like 900", amount)
	}
	r := &Request{Name: name, By: by, Amount: n, Remind: d.remind, Expire: d.expire}
	_, err = d.client.Start(ctx, job.Single(r, ""), job.Alias("request-"+name), job.Retain(job.Forever))
	return err
}

// decide sends a decision to a request.
func (d *desk) decide(ctx context.Context, name string, v Decision) error {
	h, err := d.client.Find(ctx, "request-"+name)
	if err != nil {
		return fmt.Errorf("%w; see approval list", err)
	}
	if info, err := h.Info(ctx); err != nil || info.Status.Settled() {
		return cmp.Or(err, fmt.Errorf("request %s is decided already; see approval list", name))
	}
	return client.Send(ctx, h, "decisions", v)
}

// list writes all requests, in the order in which they were filed.
func (d *desk) list(ctx context.Context) error {
	table := tabwriter.NewWriter(d.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REQUEST\tAMOUNT\tBY\tSTATE")
	for i, err := range d.client.Jobs(ctx, job.Filter{Type: "Request", Order: job.Oldest}) {
		if err != nil {
			return err
		}
		r, p := Request{}, progress{}
		state, err := d.client.At(i.ID).State(ctx, "progress")
		if raw, ok := state["progress"]; ok {
			err = json.Unmarshal(raw, &p)
		}
		if err := cmp.Or(err, json.Unmarshal(i.Args, &r)); err != nil {
			return err
		}
		now := cmp.Or(p.Outcome, fmt.Sprintf("%d of %d agreed", len(p.Yes), r.needed()))
		fmt.Fprintf(table, "%s\t%d\t%q\t%s\n", r.Name, r.Amount, r.By, now)
	}
	return table.Flush()
}

// demo plays a story, and ends when nobody has cared for the last request.
func (d *desk) demo(ctx context.Context) error {
	for _, line := range []string{
		"request Ada pencils 12", "request Ada chair 900", "request Bob boat 25000", "request Bob nonsense 99",
		"decide Grace chair yes", "decide Bob boat yes", "decide Grace boat yes", "decide Edsger boat yes",
	} {
		fmt.Fprintf(d.w, "> approval %s\n", line)
		if err := d.do(ctx, strings.Fields(line)); err != nil {
			return err
		}
		time.Sleep(time.Second / 3)
	}
	last, err := d.client.Find(ctx, "request-nonsense")
	if err == nil {
		_, err = last.Wait(ctx)
	}
	return cmp.Or(err, d.list(ctx))
}

// Decision is what one person says to a request. Other programs write it to the port decisions of the job request-NAME, as
// in {"By": "Grace", "Yes": true}.
type Decision struct {
	By  string
	Yes bool
}

// Request is a request to spend money.
type Request struct {
	Name, By       string
	Amount         int
	Remind, Expire time.Duration // how long people may be silent, and how long it lives
	Decisions      port.In[Decision]
	Outcome        port.Out[string]

	w io.Writer // shared by all runs of a process
}

// progress is what a request remembers, as the value of one key of its state.
type progress struct {
	Filed, Next time.Time // when it was filed, and when it has something to say again
	Yes         []string  // who has agreed
	Outcome     string    // how it ended
}

// needed is how many people must agree: none up to 50, and two above 1000.
func (r *Request) needed() int {
	n, _ := slices.BinarySearch([]int{50, 1000}, r.Amount)
	return n
}

// Run takes into account what people have said meanwhile, and what time it is. Then the job sleeps: no process has to
// remember it. What is told may be told again, should the process die in between; all else happens once.
func (r *Request) Run(_ context.Context, run *worker.Run) error {
	now := run.Now()
	p := progress{Filed: now, Next: now}
	if _, err := run.State().Get("progress", &p); err != nil {
		return err
	}
	over := p.Outcome != ""
	for d, err := range r.Decisions.All() {
		switch {
		case errors.Is(err, port.ErrEncoding):
			r.say("what is no decision does not count: %v", err)
		case err != nil:
			return err
		case p.Outcome != "":
			r.say("%s is too late", d.By)
		case d.By == "" || d.By == r.By || slices.Contains(p.Yes, d.By):
			r.say("the word of %q does not count (again)", d.By)
		case !d.Yes:
			p.Outcome = "rejected by " + d.By
		default:
			r.say("%s agrees", d.By)
			if p.Yes = append(p.Yes, d.By); len(p.Yes) == r.needed() {
				p.Outcome = "approved by " + strings.Join(p.Yes, " and ")
			}
		}
	}
	var err error
	switch end := p.Filed.Add(r.Expire); {
	case p.Outcome != "":
	case r.needed() == 0:
		p.Outcome = "approved"
	case !now.Before(end):
		p.Outcome = "expired"
	case !now.Before(p.Next): // each reminder asks for the next one: there is one timer at a time
		r.say("%s asks for %d; decide with: approval decide NAME %s yes|no", r.By, r.Amount, r.Name)
		wait := min(r.Remind, end.Sub(now))
		p.Next, err = now.Add(wait), run.WakeAfter(wait)
	}
	switch err = cmp.Or(err, run.State().Set("progress", p)); {
	case err != nil || over:
		return err
	case p.Outcome == "":
		return worker.ErrSuspend
	}
	r.say("%s", p.Outcome)
	return r.Outcome.Write(p.Outcome)
}

func (r *Request) say(format string, args ...any) {
	fmt.Fprintf(r.w, "request %s: %s\n", r.Name, fmt.Sprintf(format, args...))
}
