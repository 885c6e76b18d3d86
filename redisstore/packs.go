package redisstore

import (
	"strconv"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Packs: what several runs of a delta wrote to one port goes there at once, and some of them share an
// entry of the log.

const (
	// packRuns and packBytes are how many runs an entry of the log holds, and about how much of theirs.
	packRuns  = 4
	packBytes = 8 << 10
	// packed is between the entries of the runs: a byte that no JSON has, nor what is encoded.
	packed = "\x1f"
)

// alike tells whether several runs can be packed, as all that they write goes to one port, and returns
// one of their writes, or nil.
func alike(parts []store.Part) (to *store.Write, ok bool) {
	for i := range parts {
		p := &parts[i]
		switch {
		case len(p.Writes) > 1 || len(p.Log) > 0:
			return nil, false
		case len(p.Writes) == 0:
			continue
		}
		w := &p.Writes[0]
		if to == nil {
			to = w
		}
		if w.Keyed || w.Job != to.Job || w.Dir != to.Dir || w.Port != to.Port || w.Unlogged != to.Unlogged {
			return nil, false
		}
	}
	return to, len(parts) > 1
}

// packArgs encodes what several runs wrote to a port and logged as packs() in delta.lua reads it.
func packArgs(args []any, parts []store.Part, to *store.Write, target func(job.ID) string) []any {
	if to == nil {
		args = append(args, "", "", "", "")
	} else {
		args = append(args, target(to.Job), dirArg(to.Dir), to.Port, flag(to.Unlogged))
	}
	count := len(args)
	args = append(args, 0)
	for _, p := range parts {
		for _, w := range p.Writes {
			for _, m := range w.Items {
				args = append(args, []byte(m))
			}
		}
	}
	args[count] = len(args) - count - 1
	count = len(args)
	args = append(args, 0)
	for len(parts) > 0 {
		n := packOf(parts)
		args = onePack(args, parts[:n])
		parts = parts[n:]
	}
	args[count] = (len(args) - count - 1) / 3
	return args
}

// packOf returns how many of the first of some runs go into one entry of the log.
func packOf(parts []store.Part) int {
	size, runs := 0, 0
	for n, p := range parts {
		if p.Entry == "" {
			continue
		}
		if size += len(p.Entry); runs == packRuns || runs > 0 && size > packBytes {
			return n
		}
		runs++
	}
	return len(parts)
}

func onePack(args []any, parts []store.Part) []any {
	total, size := 0, 0
	counts := make([]byte, 0, 4*len(parts))
	for i, p := range parts {
		n := 0
		for _, w := range p.Writes {
			n += len(w.Items)
		}
		if i > 0 {
			counts = append(counts, ' ')
		}
		counts = strconv.AppendInt(counts, int64(n), 10)
		total += n
		size += len(p.Entry)
	}
	if size == 0 {
		return append(args, total, counts, "")
	}
	entries := make([]byte, 0, size+len(parts))
	for i, p := range parts {
		if i > 0 {
			entries = append(entries, packed...)
		}
		entries = append(entries, p.Entry...)
	}
	return append(args, total, counts, entries)
}
