package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	tallyAtOnce = 16     // batches of one run
	maxHours    = 4000   // more than those are told by days
	sumAt       = "sum:" // keys of the state begin so
)

// What a Tally counts by.
const (
	byStatus = "status"
	byPath   = "path"
	byHour   = "hour"
	byClient = "client"
)

// Sum is what is known of all records with the same key.
type Sum struct {
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	Timed    int64 `json:"timed"`  // requests of which is known how long they took
	Micros   int64 `json:"micros"` // that these took together
}

func (s Sum) plus(t Sum) Sum {
	return Sum{s.Requests + t.Requests, s.Bytes + t.Bytes, s.Timed + t.Timed, s.Micros + t.Micros}
}

// mean is how many microseconds a request took.
func (s Sum) mean() float64 { return float64(s.Micros) / float64(max(s.Timed, 1)) }

// Row is the sum of a key.
type Row struct {
	Key string `json:"key"`
	Sum
}

// Table is what a Tally knows in the end.
type Table struct {
	Keys int   `json:"keys"` // how many there are
	All  Sum   `json:"all"`  // of all keys
	Rows []Row `json:"rows"` // the most frequent keys; all, in order, of hours and statuses
	Slow []Row `json:"slow"` // those with the longest mean time
}

// Tally counts records by one of their fields. Each key is an entry of its state: a run
// reads and writes only those that its records have, so there may be any number.
type Tally struct {
	By      string
	Top     int // rows of its table
	Records port.In[Batch]
	Table   port.Out[Table]
}

// JobType implements job.Typer.
func (*Tally) JobType() string { return "logs/tally" }

// WorkerOptions implements worker.Configured.
func (*Tally) WorkerOptions() worker.Options {
	return worker.Options{Pure: true}
}

// Run counts some batches. After the last one it makes the table.
func (t *Tally) Run(_ context.Context, run *worker.Run) error {
	fresh := map[string]Sum{}
	for range tallyAtOnce {
		batch, ok, err := t.Records.Read()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		for _, r := range batch.Records {
			key := sumAt + t.key(r)
			fresh[key] = fresh[key].plus(r.sum())
		}
	}
	if err := t.add(run, fresh); err != nil {
		return err
	}
	if !t.Records.Done() {
		return nil
	}
	all, err := run.State().All()
	if err != nil {
		return err
	}
	table, err := t.table(all)
	if err != nil {
		return err
	}
	return t.Table.Write(table)
}

// add adds sums to those in the state.
func (*Tally) add(run *worker.Run, fresh map[string]Sum) error {
	keys := make([]string, 0, len(fresh))
	for key := range fresh {
		keys = append(keys, key)
	}
	known, err := run.State().GetMany(keys)
	if err != nil {
		return err
	}
	for key, sum := range fresh {
		var before Sum
		if raw, ok := known[key]; ok {
			if err := json.Unmarshal(raw, &before); err != nil {
				return fmt.Errorf("state %q: %w", key, err)
			}
		}
		if err := run.State().Set(key, before.plus(sum)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tally) key(r Record) string {
	switch t.By {
	case byPath:
		return r.Path
	case byHour:
		return r.Hour
	case byClient:
		return r.Client
	default:
		return strconv.Itoa(r.Status)
	}
}

func (r Record) sum() Sum {
	s := Sum{Requests: 1, Bytes: r.Bytes}
	if r.Micros != nil {
		s.Timed, s.Micros = 1, *r.Micros
	}
	return s
}

// table ranks what is in the state.
func (t *Tally) table(all map[string]json.RawMessage) (Table, error) {
	var table Table
	for key, raw := range all {
		row := Row{Key: strings.TrimPrefix(key, sumAt)}
		if err := json.Unmarshal(raw, &row.Sum); err != nil {
			return table, fmt.Errorf("state %q: %w", key, err)
		}
		table.Rows = append(table.Rows, row)
		table.All = table.All.plus(row.Sum)
	}
	table.Keys = len(table.Rows)
	if t.By == byHour || t.By == byStatus {
		if table.Rows = sorted(table.Rows); len(table.Rows) > maxHours {
			table.Rows = byDay(table.Rows)
		}
		return table, nil
	}
	table.Slow = slices.DeleteFunc(slices.Clone(table.Rows), func(r Row) bool { return r.Timed == 0 })
	slices.SortFunc(table.Slow, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.mean(), a.mean()), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(table.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	table.Rows = table.Rows[:min(len(table.Rows), t.Top)]
	table.Slow = table.Slow[:min(len(table.Slow), t.Top)]
	return table, nil
}

// sorted sorts rows by their keys.
func sorted(rows []Row) []Row {
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}

// byDay adds up the hours of each day. The rows are sorted.
func byDay(hours []Row) []Row {
	var days []Row
	for _, h := range hours {
		day, _, _ := strings.Cut(h.Key, "T")
		if n := len(days); n > 0 && days[n-1].Key == day {
			days[n-1].Sum = days[n-1].plus(h.Sum)
		} else {
			days = append(days, Row{day, h.Sum})
		}
	}
	return days
}
