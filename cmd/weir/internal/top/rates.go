package top

import (
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
)

// Sparklines are as wide as there is room, in these bounds: a column is one span of counting.
const (
	sparkMin = 6
	sparkMax = 42
)

// blocks are the heights of a sparkline. The lowest is for nothing.
var blocks = []rune("▁▂▃▄▅▆▇█")

// spark draws numbers as a line of that many columns, the last at its right end.
func spark(values []float64, columns int) string {
	values = values[max(0, len(values)-columns):]
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(string(blocks[0]), columns-len(values)))
	for _, v := range values {
		n := 0
		if v > 0 {
			n = 1 + int(v/most*float64(len(blocks)-2)+0.5)
		}
		b.WriteRune(blocks[n])
	}
	return b.String()
}

// history is what was counted in each span up to the last that is over, the oldest first.
func history(all []store.Activity, now time.Time, of func(*store.Activity) int64) []float64 {
	out := make([]float64, store.ActivitySpans)
	end := now.Truncate(store.ActivitySpan)
	for i := range all {
		if back := int(end.Sub(all[i].At) / store.ActivitySpan); back >= 1 && back <= len(out) {
			out[len(out)-back] = float64(of(&all[i]))
		}
	}
	return out
}

// rates is the line with what runs do, as the store has counted.
func (m *Model) rates() string {
	st, style := m.over.stats, m.cfg.Style
	if st == nil && m.over.err != nil {
		return newLine(m.width).add(" cannot count: "+words(m.over.err), style.Warn).String()
	}
	if st == nil {
		return newLine(m.width).add(" counting…", style.Faint).String()
	}
	recent := store.Recent(st.Activity, st.At)
	seconds := max(st.At.Sub(recent.At).Seconds(), 1)
	waits := ""
	if recent.Runs > 0 {
		waits = "ready " + term.Short(recent.Waited.Quantile(0.5)) + ", 95 % " + term.Short(recent.Waited.Quantile(0.95)) + "   code " + term.Short(recent.Took.Quantile(0.5)) + " "
	}
	type rate struct {
		name string
		of   func(*store.Activity) int64
		look func(string) string
	}
	all := []rate{
		{"runs", func(a *store.Activity) int64 { return a.Runs }, style.Accent},
		{"failed", func(a *store.Activity) int64 { return a.Failed }, style.Bad},
		{"read", func(a *store.Activity) int64 { return a.Read }, style.Good},
		{"written", func(a *store.Activity) int64 { return a.Written }, style.Good},
	}
	const text = 15 // of a rate, about
	switch {
	case m.width < 80:
		all = all[:2]
	case m.width < 140:
		all = all[:3]
	}
	if room := m.width - len(all)*(text+sparkMin); columnsOf(waits) > room {
		waits = ""
	}
	columns := min((m.width-columnsOf(waits)-2)/len(all)-text, sparkMax)
	l := newLine(m.width - columnsOf(waits))
	for _, r := range all {
		n := float64(r.of(&recent)) / seconds
		look := r.look
		if n == 0 {
			look = style.Faint
		}
		l.add(" ").add(r.name+" ", style.Faint).cell(term.Rate(n)+"/s ", max(text-3-len(r.name), 6), style.Bold)
		if columns >= sparkMin {
			l.add(spark(history(st.Activity, st.At, r.of), columns), look)
		}
		l.add(" ")
	}
	return l.String() + style.Faint(waits)
}
