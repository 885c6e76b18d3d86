package bedrock

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirworks/weir/job"
)

const (
	// Queue is that of the jobs of the surface.
	Queue = "bedrock"
	// MockQueue is that of the jobs that were asked for with mockRequest.
	MockQueue = "bedrock.mock"
	// maxName is the longest name of a job.
	maxName = 255
)

// typeOf is the type of the jobs with a name: the name, with a colon and two hexadecimal digits for each byte that types do not have.
func typeOf(name string) string {
	const plain = "_-./"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString(":" + strings.ToUpper(hex.EncodeToString([]byte{c})))
	}
	return b.String()
}

// nameOf is the name of which a type was made; what an engine needs besides does not count.
func nameOf(typ string) string {
	typ, _, _ = strings.Cut(typ, "@")
	parts := strings.Split(typ, ":")
	var b strings.Builder
	b.WriteString(parts[0])
	for _, part := range parts[1:] {
		if len(part) >= 2 {
			if c, err := strconv.ParseUint(part[:2], 16, 8); err == nil {
				b.WriteByte(byte(c))
				part = part[2:]
			}
		}
		b.WriteString(part)
	}
	return b.String()
}

// aliasOf is the alias of a job, by which it is found.
func aliasOf(number int64) string { return Queue + "/" + strconv.FormatInt(number, 10) }

// rootID is the ID of the root job of a number that is created at a time. All of them lie in one shard, where one ready set decides whose
// turn it is; those that were created at the same time are in the order of their numbers.
func rootID(number int64, now time.Time, shards int) job.ID {
	u := uuid.UUID{6: 0x70, 8: 0x80} // version 7
	ms, n := now.UnixMilli(), uint64(number)
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	u[6] |= byte(n >> 46 & 0xf)
	u[7] = byte(n >> 38)
	u[8] |= byte(n >> 32 & 0x3f)
	u[9], u[10], u[11], u[12] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	for try := uint32(0); ; try++ {
		u[13], u[14], u[15] = byte(try>>16), byte(try>>8), byte(try)
		if id := job.ID(u.String()); id.Shard(shards) == shardOf(shards) {
			return id
		}
	}
}

// shardOf is where the jobs lie.
func shardOf(shards int) int { return int(job.Hash(Queue) % uint32(shards)) } //nolint:gosec // there are 1024 at most

// sequentialOf is the sequential key that the store has for one of a client in a queue: one whose trees lie where the jobs do.
func sequentialOf(queue, key string, shards int) string {
	if len(key) > job.MaxKey/2 || job.CheckSequentialKey(key) != nil {
		sum := sha256.Sum256([]byte(key))
		key = hex.EncodeToString(sum[:])
	}
	for try := 0; ; try++ {
		if k := queue + "/" + key + "~" + strconv.Itoa(try); int(job.Hash(k)%uint32(shards)) == shardOf(shards) { //nolint:gosec // as there
			return k
		}
	}
}
