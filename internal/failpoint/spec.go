package failpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Action is what happens at a point.
type Action string

// All actions.
const (
	Kill  Action = "kill"
	Sleep Action = "sleep"
	Panic Action = "panic"
	Fails Action = "fail"
)

// Order says what is to happen at a point, and when.
type Order struct {
	Point  Point
	Action Action
	Sleep  time.Duration // of Sleep
	Nth    int           // at this hit, counted from 1; or, if it is zero,
	OneIn  int           // at each hit with this chance
}

// String is the order as Parse reads it.
func (o Order) String() string {
	action, when := string(o.Action), strconv.Itoa(o.Nth)
	if o.Action == Sleep {
		action += "=" + o.Sleep.String()
	}
	if o.Nth == 0 {
		when = "1/" + strconv.Itoa(o.OneIn)
	}
	return string(o.Point) + ":" + action + ":" + when
}

// Parse reads a list of orders.
func Parse(text string) ([]Order, error) {
	var orders []Order
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		o, err := parse(item)
		if err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", item, err)
		}
		orders = append(orders, o)
	}
	return orders, nil
}

func parse(item string) (o Order, err error) {
	parts := strings.Split(item, ":")
	if len(parts) != 3 {
		return o, fmt.Errorf("write it as point:action:when, like afterBegin:kill:3")
	}
	if o.Point = Point(parts[0]); !slices.Contains(All, o.Point) {
		return o, fmt.Errorf("there is no point %q; the points are %v", parts[0], All)
	}
	action, length, timed := strings.Cut(parts[1], "=")
	switch o.Action = Action(action); o.Action {
	case Sleep:
		if o.Sleep, err = time.ParseDuration(length); err != nil || o.Sleep <= 0 {
			return o, fmt.Errorf("sleep: %q is no duration: write it like sleep=200ms", length)
		}
	case Kill, Panic, Fails:
		if timed {
			return o, fmt.Errorf("only sleep takes a duration")
		}
	default:
		return o, fmt.Errorf("there is no action %q: use kill, sleep=<duration>, panic or fail", action)
	}
	number, chance := strings.CutPrefix(parts[2], "1/")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return o, fmt.Errorf("when: %q: give the number of a hit, from 1, or a chance like 1/50", parts[2])
	}
	if chance {
		o.OneIn = n
	} else {
		o.Nth = n
	}
	return o, nil
}
