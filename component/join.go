package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of Join's parameter kind: which messages without partner are written too.
const (
	JoinInner = "inner" // none; the default
	JoinLeft  = "left"
	JoinRight = "right"
	JoinOuter = "outer" // those of both sides
)

// DefaultMaxRows is how many messages Join keeps unless told otherwise.
const DefaultMaxRows = 100_000

// Join writes {"key", "left", "right"} for each pair of messages of its two ports whose
// keys are equal. Messages without partner are written, with null for the other side,
// when none can come any more. A key that is null has no partner.
//
// Every message is kept in the state until the other port is at its end: a job keeps at
// most max_rows, then it fails. Which pairs are written is the same however runs fall;
// their order follows the arrival of the later message of each. The end of out is the end
// of both ports.
type Join struct {
	pure
	// LeftKey and RightKey are expressions over it. Required.
	LeftKey  string `json:"left_key,omitempty" doc:"expression over it, a message of left, that gives its key"`
	RightKey string `json:"right_key,omitempty" doc:"expression over it, a message of right, that gives its key"`
	// Kind tells which messages without partner are written too.
	Kind string `json:"kind,omitempty" doc:"inner (default), left, right or outer: of which sides messages without partner are written too"`
	// MaxRows is how many messages are kept at a time. Zero means DefaultMaxRows.
	MaxRows int                       `json:"max_rows,omitempty" doc:"messages kept at a time, default 100000; more fail the job"`
	Left    port.In[json.RawMessage]  `port:"left,required"`
	Right   port.In[json.RawMessage]  `port:"right,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
}

// joined is what Join writes.
type joined struct {
	Key   json.RawMessage `json:"key"`
	Left  json.RawMessage `json:"left"`
	Right json.RawMessage `json:"right"`
}

// JobType implements job.TypeNamer.
func (*Join) JobType() string { return "join" }

// Describe implements Component.
func (*Join) Describe() string { return "pairs messages of two ports that have equal keys" }

// Validate implements Component.
func (j *Join) Validate() error {
	var c check
	c.expr("left_key", j.LeftKey, scopeItem, false)
	c.expr("right_key", j.RightKey, scopeItem, false)
	c.oneOf("kind", j.Kind, JoinInner, JoinLeft, JoinRight, JoinOuter)
	c.count("max_rows", j.MaxRows)
	return c.err(j)
}

// joinHead is what the state of Join begins with.
type joinHead struct {
	Next int `json:"next"` // number of the next row to be kept
	Scan int `json:"scan"` // rows that were looked at since both ports are at their end
}

// joinRow is a message that is kept.
type joinRow struct {
	Left bool            `json:"left,omitempty"`
	Name string          `json:"name"` // of its key
	Key  json.RawMessage `json:"key"`
	Data json.RawMessage `json:"data"`
}

// joinKey lists the rows of one key.
type joinKey struct {
	Left  []int `json:"left,omitempty"`
	Right []int `json:"right,omitempty"`
	Met   bool  `json:"met,omitempty"` // there were messages of both sides
}

// side is what differs between the two ports.
type side struct {
	name      string
	in, other port.In[json.RawMessage]
	key       *expression
}

func (s side) left() bool { return s.name == "left" }

// joining is one run of Join.
type joining struct {
	*Join
	run   *worker.Run
	tab   *table
	head  joinHead
	saved joinHead
	pace  *pace
	// half is the message that is being paired, if pairing it takes several commits.
	half struct {
		key  string // in the state
		done int    // partners
	}
}

// Run implements worker.Worker.
func (j *Join) Run(ctx context.Context, run *worker.Run) error {
	if err := j.Validate(); err != nil {
		return err
	}
	w := joining{Join: j, run: run, tab: newTable(run)}
	w.pace = &pace{run: run, save: w.save}
	if _, err := w.tab.get("join", &w.head); err != nil {
		return err
	}
	w.saved = w.head
	left, err := newExpression(ctx, run, j.LeftKey, scopeItem)
	if err != nil {
		return err
	}
	right, err := newExpression(ctx, run, j.RightKey, scopeItem)
	if err != nil {
		return err
	}
	var q quota
	for _, s := range []side{{"left", j.Left, j.Right, left}, {"right", j.Right, j.Left, right}} {
		for s.in.Len() > 0 && !q.spent() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.message(s, &q); err != nil {
				return err
			}
		}
	}
	if j.Left.Done() && j.Right.Done() {
		if err := w.finish(ctx); err != nil {
			return err
		}
	}
	return w.save()
}

// save puts into the state how far the run is.
func (w *joining) save() error {
	if w.half.done > 0 {
		if _, err := w.tab.set(w.half.key, w.half.done); err != nil {
			return err
		}
	}
	if w.head == w.saved {
		return nil
	}
	w.saved = w.head
	_, err := w.tab.set("join", w.head)
	return err
}

// message pairs the next message of a side. It is taken last, so that a checkpoint on the
// way leaves it where it was, and the state tells which of its pairs are written.
func (w *joining) message(s side, q *quota) error {
	raw, _, err := s.in.Peek()
	if err != nil {
		return err
	}
	v, err := s.key.message(raw)
	if err != nil {
		return err
	}
	row := joinRow{Left: s.left(), Data: raw}
	if row.Key, err = encode(v); err != nil {
		return err
	}
	if row.Name, err = keyOf(v); err != nil {
		return err
	}
	var known joinKey
	if v != nil {
		if _, err := w.tab.get("key."+row.Name, &known); err != nil {
			return err
		}
		if err := w.pairs(s, row, &known); err != nil {
			return err
		}
	}
	if _, err := q.take(s.in); err != nil {
		return err
	}
	return w.keep(s, row, known, v == nil)
}

// pairs writes a message with each of its partners.
func (w *joining) pairs(s side, row joinRow, known *joinKey) error {
	partners := known.Left
	if s.left() {
		partners = known.Right
	}
	if len(partners) == 0 {
		return nil
	}
	w.half.key = "half." + s.name
	resumed, err := w.tab.get(w.half.key, &w.half.done)
	if err != nil {
		return err
	}
	for w.half.done < len(partners) {
		key := "row." + strconv.Itoa(partners[w.half.done])
		var partner joinRow
		if ok, err := w.tab.get(key, &partner); err != nil {
			return err
		} else if !ok {
			return lost(key)
		}
		size, err := w.write(row, partner.Data)
		if err != nil {
			return err
		}
		w.half.done++
		if err := w.pace.wrote(size); err != nil {
			return err
		}
		resumed = resumed || w.pace.q.messages == 0 // there was a checkpoint
	}
	w.half.done = 0
	if resumed {
		w.tab.unset(w.half.key)
	}
	return nil
}

// keep keeps a message for later ones of the other side, if any can come.
func (w *joining) keep(s side, row joinRow, known joinKey, alone bool) error {
	partners, mine := known.Right, &known.Left
	if !s.left() {
		partners, mine = known.Left, &known.Right
	}
	last := alone || s.other.Done()
	if last && len(partners) == 0 {
		return w.unpaired(row)
	}
	if last && known.Met {
		return nil
	}
	known.Met = known.Met || len(partners) > 0
	if !last {
		if w.head.Next >= cmp.Or(w.MaxRows, DefaultMaxRows) {
			return fmt.Errorf("%d messages wait for partners, and max_rows allows no more", w.head.Next)
		}
		*mine = append(*mine, w.head.Next)
		if _, err := w.tab.set("row."+strconv.Itoa(w.head.Next), row); err != nil {
			return err
		}
		w.head.Next++
	}
	_, err := w.tab.set("key."+row.Name, known)
	return err
}

// finish writes the kept messages that found no partner.
func (w *joining) finish(ctx context.Context) error {
	for w.head.Scan < w.head.Next {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := "row." + strconv.Itoa(w.head.Scan)
		var row joinRow
		var known joinKey
		if _, err := w.tab.get(name, &row); err != nil {
			return err
		}
		if _, err := w.tab.get("key."+row.Name, &known); err != nil {
			return err
		}
		w.head.Scan++
		w.tab.unset(name)
		if !known.Met {
			if err := w.unpaired(row); err != nil {
				return err
			}
		}
		if err := w.pace.wrote(len(row.Data)); err != nil {
			return err
		}
	}
	return nil
}

// unpaired writes a message that has no partner, if its side is wanted.
func (w *joining) unpaired(row joinRow) error {
	wanted := w.Kind == JoinOuter || w.Kind == JoinLeft && row.Left || w.Kind == JoinRight && !row.Left
	if !wanted {
		return nil
	}
	_, err := w.write(row, json.RawMessage("null"))
	return err
}

// write writes a message with its partner and returns the size of that.
func (w *joining) write(row joinRow, partner json.RawMessage) (int, error) {
	out := joined{Key: row.Key, Left: row.Data, Right: partner}
	if !row.Left {
		out.Left, out.Right = out.Right, out.Left
	}
	raw, err := port.Encode(out)
	if err != nil {
		return 0, err
	}
	return len(raw), w.Out.Write(raw)
}
