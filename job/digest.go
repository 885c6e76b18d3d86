package job

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/weirworks/weir/port"
)

// Digest tells plans of graphs apart: it is the same for the same jobs, arguments, ports, wires
// and initial messages, and depends on neither labels nor InstanceOf. That of a lone job is empty.
func (p *Plan) Digest() string {
	if !p.Nodes[0].Graph {
		return ""
	}
	d := make(digest, 0, 1024)
	for i := range p.Nodes {
		d.node(&p.Nodes[i])
	}
	sum := sha256.Sum256(d)
	return hex.EncodeToString(sum[:8])
}

// digest is what a plan's digest is the hash of. Every text has its length before it, every list
// the number of its elements and every number a space behind it, so that different plans never give
// the same bytes.
type digest []byte

func (d *digest) number(n int64) { *d = append(strconv.AppendInt(*d, n, 10), ' ') }

func (d *digest) flag(f bool) { *d = append(strconv.AppendBool(*d, f), ' ') }

func digestText[T ~string | ~[]byte](d *digest, s T) {
	d.number(int64(len(s)))
	*d = append(*d, s...)
}

func digestTexts[T ~string | ~[]byte](d *digest, all []T) {
	d.number(int64(len(all)))
	for _, s := range all {
		digestText(d, s)
	}
}

func (d *digest) node(n *Node) {
	digestText(d, n.Name)
	d.number(int64(n.Parent))
	digestText(d, n.Type)
	digestText(d, n.Queue)
	d.flag(n.Graph)
	digestText(d, n.Args)
	d.number(n.At.Unix())
	d.number(int64(n.At.Nanosecond()))
	d.flag(n.Silent)
	if n.Priority != nil { // else the digest is that of before there were any
		digestText(d, "priority")
		d.number(int64(*n.Priority))
	}
	if o := n.Options; o != (RunOptions{}) { // as above
		digestText(d, "options")
		d.number(int64(o.Tries))
		for _, t := range []time.Duration{o.Backoff, o.MaxBackoff, o.Timeout} {
			d.number(int64(t))
		}
	}
	if n.TypeVersion != 0 { // as with priorities
		digestText(d, "version")
		d.number(int64(n.TypeVersion))
	}
	digestText(d, n.OnFailure)
	d.flag(n.Loop)
	d.number(int64(len(n.Ports)))
	for i := range n.Ports {
		d.port(&n.Ports[i])
	}
}

func (d *digest) port(p *Port) {
	digestText(d, p.Name)
	d.number(int64(p.Dir))
	digestText(d, p.Default)
	d.number(int64(p.Limit))
	d.flag(p.Required)
	digestText(d, p.Type)
	if p.MessageVersion != 0 { // as with priorities
		digestText(d, "version")
		d.number(int64(p.MessageVersion))
	}
	digestTexts(d, p.Channels)
	d.flag(p.Keep)
	d.number(int64(len(p.Edges)))
	for _, e := range p.Edges {
		d.number(int64(len(e)))
		for _, t := range e {
			d.number(int64(t.Node))
			d.number(int64(t.Dir))
			digestText(d, t.Port)
			d.flag(t.Feedback)
		}
	}
	d.number(int64(p.Sources))
	d.number(int64(p.Loops))
	digestTexts(d, p.Initial)
	d.flag(p.Closed)
}

// MessageTypes tells which Go types the messages of ports have, by type of job and port, as far as known: what Patch compares.
func (p *Plan) MessageTypes() map[string]string {
	types := map[string]string{}
	for i := range p.Nodes {
		for k := range p.Nodes[i].Ports {
			if q := &p.Nodes[i].Ports[k]; q.Type != "" {
				types[MessageKey(p.Nodes[i].Type, q)] = q.Type
			}
		}
	}
	return types
}

// MessageKey names a port of a type of job, see Plan.MessageTypes.
func MessageKey(typ string, p *Port) string { return typ + " " + port.TypeKey(p.Dir, p.Name) }
