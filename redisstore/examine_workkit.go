package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// kitLate is how late an entry of a schedule of WorkKit may be moved before that is worth a remark.
const kitLate = time.Minute

// workkits looks for entries of schedules of WorkKit that are due and not moved: as nobody serves them, or as they cannot be launched.
func (e *examiner) workkits(ctx context.Context) error {
	names, err := e.WorkKits(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		refused, err := e.rdb.HGetAll(ctx, e.keys.workkit(name, "refused")).Result()
		if err != nil {
			return err
		}
		late, err := e.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: name + ":next", ByScore: true, Start: "-inf", Stop: strconv.FormatInt(e.now.Add(-kitLate).UnixMilli(), 10), Count: int64(len(refused) + shown),
		}).Result()
		if err != nil {
			return err
		}
		var why, bad, zrem []string
		known := map[string]bool{}
		for _, id := range slices.Sorted(maps.Keys(refused)) {
			var r WorkKitRefusal
			_ = json.Unmarshal([]byte(refused[id]), &r) // then nothing is said of it but its ID
			known[r.Member] = true
			if r.Member == id { // it is recorded under itself, as it says no ID
				bad = append(bad, r.Why)
				zrem = append(zrem, "'"+strings.ReplaceAll(id, "'", `'"'"'`)+"'")
				continue
			}
			why = append(why, fmt.Sprintf("%s (%s)", id, r.Why))
		}
		late = slices.DeleteFunc(late, func(member string) bool { return known[member] })
		if len(why) > 0 {
			e.warn("start an engine that has the types that they name, or take them away: weir trigger list --workkit "+name+" lists them, weir trigger delete --workkit "+name+" ENTRY takes one away",
				"schedule %s: what is due cannot be launched: %s", name, few(why))
		}
		if len(bad) > 0 {
			e.warn(fmt.Sprintf("take them out of the set, and add what they were meant to be: redis-cli ZREM '%s:next' %s", name, strings.Join(zrem, " ")),
				"schedule %s: %s of its queue name no entry: %s", name, counted(len(bad), "member"), few(bad))
		}
		if len(late) > 0 {
			e.warn("serve it: weir worker --workkit "+name, "schedule %s: entries are due for more than %s and nobody moves them: %s", name, kitLate, few(late))
		}
	}
	if !e.found() {
		e.ok("schedules of WorkKit are served: %s", few(names))
	}
	return nil
}
