package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc64"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirworks/weir/job"
)

// Marks of a block.
const (
	headMark = "#:Batch "
	endMark  = "#:EndBatch\n"
	maxHead  = 1 << 10 // bytes of a header
	dateForm = "2006-01-02T15:04:05.000Z"
)

// Limits of what is written at once.
const (
	MaxBody  = 8 << 20 // bytes of the body of a block
	MaxLines = 100_000 // payloads of a block
)

// lineBits is how many bits of an ID number the payloads of a block.
const lineBits = 17

// block is what was written at once: payloads of one job type.
type block struct {
	date    time.Time
	jobtype string
	id      uuid.UUID // of the first payload; that of the n-th has n in its bits for lines
	body    []byte    // as it was given
}

// errTorn is of a block that ends before it should; errDamaged of one whose bytes are not those that were written.
var (
	errTorn    = errors.New("it breaks off")
	errDamaged = errors.New("its checksum is wrong")
)

var crcTable = crc64.MakeTable(crc64.ECMA)

// sum is a checksum that only those can make who know the salt: a payload that looks like a block is none.
func sum(salt uint64, data []byte) uint64 {
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], salt)
	return crc64.Update(crc64.Checksum(s[:], crcTable), crcTable, data)
}

// append adds the block to a buffer, as it lies in a file.
func (b *block) append(to []byte, salt uint64) []byte {
	from := len(to)
	to = append(to, headMark+"date="...)
	to = b.date.AppendFormat(to, dateForm)
	to = append(to, ",bytes="...)
	to = strconv.AppendInt(to, int64(len(b.body)), 10)
	to = append(to, ",jobtype="...)
	to = append(to, b.jobtype...)
	to = append(to, ",id="...)
	to = append(to, b.id.String()...)
	to = appendSum(append(to, ",sum="...), sum(salt, b.body))
	to = appendSum(append(to, ",head="...), sum(salt, to[from:]))
	to = append(to, '\n')
	to = append(to, b.body...)
	if b.body[len(b.body)-1] != '\n' {
		to = append(to, '\n')
	}
	return append(to, endMark...)
}

func appendSum(to []byte, s uint64) []byte {
	return hex.AppendEncode(to, binary.BigEndian.AppendUint64(nil, s))
}

// head is the first line of a block.
type head struct {
	block
	bytes int    // of the body
	sum   uint64 // of the body
	size  int    // of the line
}

// parseHead reads the first line of a block. What follows it in data is not looked at.
func parseHead(data []byte, salt uint64) (h head, err error) {
	end := bytes.IndexByte(data[:min(len(data), maxHead)], '\n')
	if end < 0 {
		if len(data) < maxHead && strings.HasPrefix(headMark, string(data[:min(len(data), len(headMark))])) {
			return h, errTorn
		}
		return h, errDamaged
	}
	line := string(data[:end])
	before, mark, ok := strings.Cut(line, ",head=")
	if !ok || !strings.HasPrefix(line, headMark) {
		return h, errDamaged
	}
	if s, err := parseSum(mark); err != nil || s != sum(salt, data[:len(before)]) {
		return h, errDamaged
	}
	h.size = end + 1
	return h, h.fields(strings.TrimPrefix(before, headMark))
}

// fields reads the list of a header that its checksum vouches for: what is wrong with it was written so.
func (h *head) fields(list string) (err error) {
	var known int
	for field := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "date":
			h.date, err = time.Parse(dateForm, value)
		case "bytes":
			if h.bytes, err = strconv.Atoi(value); err == nil && (h.bytes < 1 || h.bytes > MaxBody) {
				err = errDamaged
			}
		case "jobtype":
			h.jobtype = value
		case "id":
			h.id, err = uuid.Parse(value)
		case "sum":
			h.sum, err = parseSum(value)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		known++
	}
	if known != 5 {
		return errDamaged
	}
	return nil
}

func parseSum(text string) (uint64, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 8 || strings.ToLower(text) != text {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint64(raw), nil
}

// parse reads the block that data begins with, and returns how many bytes of data are not those of blocks behind it: also of a block that
// is damaged, as far as that can be told. The error wraps errTorn if data ends before the block does.
func parse(data []byte, salt uint64) (b block, size int, err error) {
	h, err := parseHead(data, salt)
	if errors.Is(err, errTorn) {
		return b, len(data), err
	}
	if err != nil && len(bytes.Trim(data, "\x00")) == 0 { // a file that had grown when its machine died, and not more
		return b, len(data), errTorn
	}
	if err != nil {
		return b, next(data, salt), err
	}
	rest := data[h.size:]
	if len(rest) < h.bytes+len(endMark) {
		return h.block, len(data), errTorn
	}
	body := rest[:h.bytes]
	if sum(salt, body) != h.sum { // its last byte may be wrong, too
		return h.block, h.size + next(rest, salt), errDamaged
	}
	size = h.size + h.bytes + len(endMark)
	if body[h.bytes-1] != '\n' {
		size++
	}
	if size > len(data) {
		return h.block, len(data), errTorn
	}
	h.body = body
	return h.block, size, nil
}

// next is where in data, but not at its beginning, a line is that a block begins with; its end if there is none.
func next(data []byte, salt uint64) int {
	for at := 1; at < len(data); {
		n := bytes.Index(data[at:], []byte("\n"+headMark))
		if n < 0 {
			break
		}
		at += n + 1
		if _, err := parseHead(data[at:], salt); err == nil {
			return at
		}
	}
	return len(data)
}

// payloads calls fn with each payload of a body, and its place there: a line without what ends it. Empty lines and those that begin with #
// are none.
func payloads(body []byte, fn func(at int, payload []byte) bool) {
	for at := 0; at < len(body); {
		end := bytes.IndexByte(body[at:], '\n')
		if end < 0 {
			end = len(body) - at
		}
		if line := body[at : at+end]; end > 0 && line[0] != '#' && !fn(at, line) {
			return
		}
		at += end + 1
	}
}

// Payloads are those of a body: its lines, without what ends them, but for empty ones and those that begin with #.
func Payloads(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		payloads(body, func(_ int, payload []byte) bool { return yield(payload) })
	}
}

// Count is how many payloads a body has.
func Count(body []byte) (n int) {
	payloads(body, func(int, []byte) bool { n++; return true })
	return n
}

// blockID is the ID of the first payload of a block: a UUIDv7 of a moment, with the number of the block within its millisecond, and what is random.
func blockID(ms int64, seq uint16, random uint64) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[:8], uint64(ms)<<16|0x7000|uint64(seq&0xfff))
	binary.BigEndian.PutUint64(u[8:], 1<<63|random&(1<<(62-lineBits)-1))
	return u
}

// lineID is the ID of the n-th payload of a block, from 0.
func lineID(u uuid.UUID, n int) job.ID {
	low := binary.BigEndian.Uint64(u[8:])
	binary.BigEndian.PutUint64(u[8:], low|uint64(n)<<(62-lineBits))
	return job.ID(u.String())
}
