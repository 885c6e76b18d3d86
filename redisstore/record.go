package redisstore

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// What a record says, and will say: compact.lua says how. Nobody but whoever holds the run of a record changes it while that goes
// on, so that what it says when all its jobs have completed is worked out here.

// recordOver is how the run of a record is called that is over.
const recordOver = "over"

// definition is what trees of a kind have in common that are records: of each job, the root first.
type definition []definedJob

type definedJob struct {
	text   string            // fields and values, in turn
	fields map[string]string // these by their names
	to     int               // the one job that it feeds, or -1
	into   map[string]string // the In port of that, by Out port
	up     map[string]string // the Out port of the graph that it feeds, by Out port
}

// runs is how many of the jobs have runs: a graph has none.
func (d definition) runs() int {
	if d[0].fields["graph"] == "1" {
		return len(d) - 1
	}
	return len(d)
}

// readDefinition reads what compact.definition() in compact.lua joins to one text.
func readDefinition(text string) definition {
	var d definition
	for one := range strings.SplitSeq(text, "\x1e") {
		d = append(d, readDefined(one))
	}
	return d
}

func readDefined(text string) definedJob {
	j := definedJob{text: text, fields: map[string]string{}, to: -1, into: map[string]string{}, up: map[string]string{}}
	several := false
	for rest := text; rest != ""; {
		var name, value string
		name, rest, _ = strings.Cut(rest, "\x1f")
		value, rest, _ = strings.Cut(rest, "\x1f")
		j.fields[name] = value
		out, isOut := strings.CutPrefix(name, "o.")
		_, end, wired := strings.Cut(value, " ")
		if !isOut || !wired {
			continue
		}
		if up, ok := strings.CutPrefix(end, "0o."); ok && isWord(up) {
			j.up[out] = up
			continue
		}
		number, in, ok := strings.Cut(end, "i.")
		to, err := strconv.Atoi(number)
		if several = several || j.to >= 0 || !ok || err != nil || !isWord(in); !several {
			j.to, j.into[out] = to, in
		}
	}
	if several || len(j.up) > 0 {
		j.to = -1
	}
	return j
}

// isWord tells whether a text is one name of a port, and no list of edges.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// limit is how many messages a port holds, 0 for any number; ok is false of one that is not that simple.
func (j *definedJob) limit(name string) (n int, ok bool) {
	n, err := strconv.Atoi(j.fields[name])
	return n, err == nil
}

// record is what is stored of a tree whose first run goes on.
type record struct {
	def           definition
	root          job.ID
	created, keep string
	head, shared  string // what comes before the run: as it is, and what all jobs have
	run           string // lead, when it was ready, token, when its run began, and its round
	rest          string // what it says of jobs alone, each with a byte 30 before its number
	lead          int
	words         []string // of run
}

// readRecord reads a record, but for what its definition says.
func readRecord(root job.ID, text string) *record {
	r := &record{root: root}
	head, text, _ := strings.Cut(text, "\x1e")
	r.shared, text, _ = strings.Cut(text, "\x1e")
	run, rest, more := strings.Cut(text, "\x1e")
	if more {
		r.rest = "\x1e" + rest
	}
	r.head = head
	words := strings.Split(head, " ")
	_, r.run, _ = strings.Cut(run, " ")
	r.words = strings.Split(r.run, " ")
	if len(words) != 4 || len(r.words) != 5 {
		return nil
	}
	r.created, r.keep = words[1], words[3]
	var err error
	if r.lead, err = strconv.Atoi(r.words[0]); err != nil || r.lead < 0 {
		return nil
	}
	return r
}

// own is what the record says of a job alone, with a byte 31 in front; or nothing.
func (r *record) own(n int) string {
	mark := "\x1e" + strconv.Itoa(n)
	_, own, ok := strings.Cut(r.rest, mark+"\x1f")
	if !ok {
		return ""
	}
	own, _, _ = strings.Cut(own, "\x1e")
	return "\x1f" + own
}

// fields are those of a job and their values, in turn, as one text, as compact.text() in compact.lua says.
func (r *record) fields(n int) string {
	var b strings.Builder
	b.WriteString(r.def[n].text + "\x1fcreated\x1f" + r.created + "\x1fparent\x1f")
	if n > 0 {
		b.WriteString(string(r.root))
	}
	if r.shared != "" {
		b.WriteString("\x1f" + r.shared)
	}
	if n == 0 && r.keep != "-" {
		b.WriteString("\x1fretain\x1f" + r.keep)
	}
	if n == r.lead {
		w := r.words
		b.WriteString("\x1fqueued\x1f" + w[1] + "\x1fagain\x1f0\x1fstatus\x1f" + string(statemachine.Running) +
			"\x1ftoken\x1f" + w[2] + "\x1fran\x1f" + w[3] + "\x1fround\x1f" + w[4])
	}
	b.WriteString(r.own(n))
	return b.String()
}

// id is the ID of a job by its number.
func (r *record) id(n int) job.ID {
	if n == 0 {
		return r.root
	}
	return r.root.Nth(n)
}

// row returns the jobs in a row behind the first one, that are suspended from the beginning and have nothing to read yet: at most
// so many.
func (r *record) row(most int) (row []int) {
	lead := &r.def[r.lead]
	for d := lead; d.to >= 0 && d.to < len(r.def) && len(row) < min(most, len(r.def)); {
		n := d.to
		if d = &r.def[n]; d.fields["queue"] != lead.fields["queue"] || d.fields["status"] != string(statemachine.Suspended) {
			break
		}
		row = append(row, n)
	}
	return row
}

// recordSnapshot decodes what compact.begin() in compact_run.lua returns, and notes the record, for the transaction that ends the run.
func (s *Store) recordSnapshot(d *decoder, l []any, id job.ID, token string, row int) *store.Snapshot {
	text := d.str(d.at(l, 1))
	digest, _, _ := strings.Cut(text, " ")
	def := s.definitions.of(digest, d.str(d.at(l, 2)))
	r := readRecord(id.Tree(), text)
	if r == nil || r.lead >= len(def) {
		d.fail("a record", text)
		return nil
	}
	r.def = def
	snap := d.look(id, r.fields(r.lead), "", "")
	snap.Token = token
	for rest := l[3:]; len(rest) > 2 && d.err == nil; {
		box := store.Inbox{Port: d.str(rest[0]), Len: int(d.int(rest[1]))}
		n := max(min(int(d.int(rest[2])), len(rest)-3), 0)
		box.Items, rest = d.raws(rest[3:3+n]), rest[3+n:]
		snap.In = append(snap.In, box)
	}
	for _, n := range r.row(row) {
		snap.Row = append(snap.Row, d.look(r.id(n), r.fields(n), "", ""))
	}
	if d.err == nil {
		s.definitions.begun(token, r)
	}
	return snap
}

// of returns the definition with a digest, which is new if it is given. A reply gives it once: it is known for long behind that.
func (d *definitions) of(digest, text string) definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	def := d.known[digest]
	if def == nil {
		def = d.before[digest]
	}
	if def == nil && text != "" {
		if d.known == nil || len(d.known) >= mostDefinitions {
			d.known, d.before = map[string]definition{}, d.known
		}
		def = readDefinition(text)
		d.known[digest] = def
	}
	return def
}

// mostRuns is how many runs are remembered that may complete a record. If it is another one's, it is completed as other trees are.
const mostRuns = 1 << 12

// begun notes that a run began which may complete a record.
func (d *definitions) begun(token string, r *record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs == nil || len(d.runs) >= mostRuns {
		d.runs = map[string]*record{}
	}
	d.runs[token] = r
}

// ended returns the record whose run has a token, or nil, and forgets it.
func (d *definitions) ended(token string) *record {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[token]
	delete(d.runs, token)
	return r
}

// recordTx is a transaction that completes all jobs of a record.
type recordTx struct {
	root   string
	absent []any // keys that must not be there
	args   []any // what compact.transaction() in compact_end.lua reads, behind how a run is to begin
}

// aheadArgs encodes what compact.ahead() in compact_end.lua reads, of the transactions of a call.
func aheadArgs(args []any, group []*settling) []any {
	roots, keys := 0, 0
	for _, t := range group {
		if t.record != nil {
			roots, keys = roots+1, keys+len(t.record.absent)
		}
	}
	args = append(args, roots)
	for _, t := range group {
		if t.record != nil {
			args = append(args, t.record.root)
		}
	}
	args = append(args, keys)
	for _, t := range group {
		if t.record != nil {
			args = append(args, t.record.absent...)
		}
	}
	return args
}

// completes returns the call of a transaction that completes all jobs of a record, or nil if it does more than a record may have, or
// if the record does not have all the jobs, each of which but the first reads what the one before it writes.
func (k keyspace) completes(r *record, tx store.Tx) *recordTx {
	if r.def.runs() != len(tx.Deltas) || tx.Deltas[0].Job != r.id(r.lead) {
		return nil
	}
	t := &recordTx{root: string(r.root)}
	entries := 0
	for i := range tx.Deltas {
		d := &tx.Deltas[i]
		var before *store.Delta
		if i > 0 {
			before = &tx.Deltas[i-1]
		}
		if entries += 1 + len(d.Log); entries > compactLog || !simple(d) || !follows(d, before) || !k.expects(t, r, d, before) {
			return nil
		}
	}
	last := &tx.Deltas[len(tx.Deltas)-1]
	end, ok := k.ends(t, r, last)
	if !ok {
		return nil
	}
	lead, parts := &tx.Deltas[0], r.after(tx, end)
	t.args = append(t.args, "record", "", t.root, "\x1e"+string(statemachine.Running)+" "+strings.Join(r.words[:3], " ")+" ")
	t.args = append(t.args, parts...)
	taken := 0
	if len(lead.Takes) > 0 {
		taken = lead.Takes[0].N
	}
	if taken > 0 {
		t.args = append(t.args, k.port(lead.Job, port.Input, lead.Takes[0].Port))
	}
	items := 0
	if len(last.Writes) > 0 && len(last.Writes[0].Items) > 0 {
		items = len(last.Writes[0].Items)
		t.args = append(t.args, end.key)
		for _, m := range last.Writes[0].Items {
			t.args = append(t.args, []byte(m))
		}
	}
	logged := len(t.args)
	t.args = loggedArgs(t.args, tx, end)
	logged = len(t.args) - logged
	def := &r.def[last.Job.Number()]
	shape := []string{
		def.fields["queue"], cmp.Or(def.fields["priority"], "500"), r.keep, strconv.Itoa(r.lead), strconv.Itoa(last.Job.Number()),
		strconv.Itoa(len(tx.Deltas)), flag(len(r.def) == 1), strconv.Itoa(len(parts)), strconv.Itoa(taken), strconv.Itoa(items), strconv.Itoa(logged), strconv.Itoa(len(t.absent)),
	}
	for i := range tx.Deltas {
		t.args, shape = k.stateArgs(t.args, shape, &tx.Deltas[i])
	}
	t.args[1] = strings.Join(shape, "\x1f")
	return t
}

// expects adds the keys that must not be there for a delta to hold, and tells whether its ports are as it needs them.
func (k keyspace) expects(t *recordTx, r *record, d, before *store.Delta) bool {
	n := d.Job.Number()
	if n >= len(r.def) || d.Job.Tree() != r.root {
		return false
	}
	def, in := &r.def[n], ""
	if len(d.Takes) > 0 {
		in = d.Takes[0].Port
	}
	if before != nil {
		from := &r.def[before.Job.Number()]
		if from.to != n || from.into[outOf(before)] != in {
			return false
		}
		limit, ok := def.limit("i." + in)
		if !ok || limit > 0 && d.Speculation.Seen >= limit || len(before.Closes) > 0 && def.fields["n.i."+in] != "1" {
			return false
		}
		t.absent = append(t.absent, k.job(d.Job, lockSuffix), k.port(d.Job, port.Input, in))
	} else if in != "" {
		if _, ok := def.limit("i." + in); !ok {
			return false
		}
	}
	if len(d.Set) > 0 { // nothing that is written may break off
		t.absent = append(t.absent, k.job(d.Job, stateSuffix))
	}
	return true
}

// outOf is the Out port that such a delta writes to, or closes, or nothing.
func outOf(d *store.Delta) string {
	if len(d.Closes) > 0 {
		return d.Closes[0]
	}
	if len(d.Writes) > 0 {
		return d.Writes[0].Port
	}
	return ""
}

// recordEnd is where that stays which the last job of a record writes.
type recordEnd struct {
	key  string // of the list
	at   job.ID
	port string
	up   bool // it is a port of the graph
}

// ends returns that, and adds its key to those that must not be there; ok is false if it may not be written so.
func (k keyspace) ends(t *recordTx, r *record, d *store.Delta) (end recordEnd, ok bool) {
	out := outOf(d)
	if out == "" {
		return end, true
	}
	def := &r.def[d.Job.Number()]
	end.at, end.port = d.Job, out
	if up := def.up[out]; up != "" {
		end.at, end.port, end.up = r.root, up, true
		def = &r.def[0]
	}
	limit, ok := def.limit("o." + end.port)
	if !ok || limit > 0 && len(d.Writes) > 0 && len(d.Writes[0].Items) >= limit {
		return end, false
	}
	if end.up && (end.port == job.ErrorsPort || len(d.Closes) > 0 && def.fields["n.o."+end.port] != "1") {
		return end, false
	}
	end.key = k.port(end.at, port.Output, end.port)
	t.absent = append(t.absent, end.key)
	return end, true
}

// recordText is what a record is to say, in parts that the time is between.
type recordText struct {
	parts []any
	part  strings.Builder
}

func (t *recordText) set(name, value string) { t.part.WriteString("\x1f" + name + "\x1f" + value) }

func (t *recordText) now(name string) {
	t.set(name, "")
	t.parts = append(t.parts, t.part.String())
	t.part.Reset()
}

// after is what the record says when a transaction has completed all its jobs.
func (r *record) after(tx store.Tx, end recordEnd) []any {
	t := &recordText{}
	t.part.WriteString(r.head + "\x1e" + r.shared + "\x1e" + recordOver + " " + r.run)
	last := &tx.Deltas[len(tx.Deltas)-1]
	if r.def.runs() < len(r.def) {
		t.part.WriteString("\x1e0" + r.own(0))
		if end.up && len(last.Closes) > 0 {
			t.set("n.o."+end.port, "0")
			t.set("x.o."+end.port, "1")
		}
		t.set("status", string(statemachine.Completed))
		t.now("ended")
		t.set("reason", "")
		t.set("open", "0")
		t.set("broken", "0")
	}
	for i := range tx.Deltas {
		d := &tx.Deltas[i]
		n := d.Job.Number()
		t.part.WriteString("\x1e" + strconv.Itoa(n) + r.own(n))
		t.completed(d, i == len(tx.Deltas)-1)
	}
	if end.up && len(last.Writes) > 0 && len(last.Writes[0].Items) > 0 {
		t.set("h.o."+last.Writes[0].Port, strconv.Itoa(len(last.Writes[0].Items)))
	}
	return append(t.parts, t.part.String())
}

// completed adds what changes in the fields of a job.
func (t *recordText) completed(d *store.Delta, last bool) {
	t.set("reason", "")
	t.set("last", d.Token)
	t.set("token", "")
	t.set("step", "1")
	t.set("tries", "0")
	t.set("version", "1")
	if d.Speculation != nil {
		t.now("ran")
	}
	if d.Started {
		t.set("started", "1")
	}
	if len(d.Takes) > 0 {
		t.set("h.i."+d.Takes[0].Port, strconv.Itoa(d.Takes[0].N))
	}
	if d.Speculation != nil && d.Speculation.Closed {
		t.set("n.i."+d.Speculation.Port, "0")
		t.set("x.i."+d.Speculation.Port, "1")
		t.set("touched", "1")
	}
	if !last && len(d.Writes) > 0 && len(d.Writes[0].Items) > 0 {
		t.set("h.o."+d.Writes[0].Port, strconv.Itoa(len(d.Writes[0].Items)))
	}
	if len(d.Closes) > 0 {
		t.set("x.o."+d.Closes[0], "1")
	}
	t.set("status", string(statemachine.Completed))
	t.now("ended")
}

// loggedArgs encodes what a transaction logs, as log() in log.lua does but for the times.
func loggedArgs(args []any, tx store.Tx, end recordEnd) []any {
	for i := range tx.Deltas {
		d := &tx.Deltas[i]
		n := logNumber(d.Job)
		for _, text := range d.Log {
			args = append(args, n+"\x1fn\x1f\x1f"+text)
		}
		if d.Entry == "" {
			continue
		}
		where := ""
		if len(d.Writes) > 0 && len(d.Writes[0].Items) > 0 && !d.Writes[0].Unlogged {
			to := logNumber(end.at) + " o " + end.port
			if i+1 < len(tx.Deltas) {
				after := &tx.Deltas[i+1]
				to = logNumber(after.Job) + " i " + after.Takes[0].Port
			}
			where = to + " 0 " + strconv.Itoa(len(d.Writes[0].Items))
		}
		args = append(args, n+"\x1fr\x1f"+where+"\x1f"+d.Entry)
	}
	return args
}

// logNumber is the number of a job in its tree as logs have it.
func logNumber(id job.ID) string {
	if id.IsRoot() {
		return ""
	}
	return strconv.Itoa(id.Number())
}

// stateArgs encodes what changes in the state of a job, if that does, and adds to the shape of the transaction how many keys do.
func (k keyspace) stateArgs(args []any, shape []string, d *store.Delta) ([]any, []string) {
	if len(d.Set)+len(d.Unset) == 0 {
		return args, shape
	}
	args = append(args, k.job(d.Job, stateSuffix))
	for name, v := range d.Set {
		args = append(args, name, []byte(v))
	}
	for _, name := range d.Unset {
		args = append(args, name)
	}
	return args, append(shape, strconv.Itoa(len(d.Set)), strconv.Itoa(len(d.Unset)))
}
