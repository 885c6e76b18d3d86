//go:build mutation

package mutation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
)

// Enabled tells whether the program can be broken.
const Enabled = true

// chosen is what the environment says is broken.
var chosen = mustKnow(Name(os.Getenv("WEIR_MUTATION")))

func mustKnow(n Name) Name {
	if n != "" && !slices.Contains(All, n) {
		panic(fmt.Sprintf("WEIR_MUTATION: there is no %q; use one of %v", n, All)) //nolint:forbidigo // only in builds for tests
	}
	return n
}

// On tells whether Weir is broken in this way.
func On(n Name) bool { return chosen == n }

// Lease returns how long a lease is to be, by a clock that may be wrong.
func Lease(d time.Duration) time.Duration {
	if On(ClientClock) {
		return max(d+failpoint.Skew(), 0)
	}
	return d
}

// edit replaces a piece of a file of scripts.
type edit struct{ file, old, new string }

// edits are what is broken in scripts.
var edits = map[Name][]edit{
	NoFence: {{"tx", "if j.token ~= d.token then return 'fenced' end", ""}},
	DoubleApply: {{
		"tx", "if j.status == '' or j.last ~= d.last then",
		"if j.status ~= '' and j.last == d.last then j.token, j.status = d.token, S.running end\n      if true then",
	}},
	LostWake: {{"base", "call('ZADD', P .. 'due', str(at or NOW + LOOK), j.id)", "if at then call('ZADD', P .. 'due', str(at), j.id) end"}},
	PopAtBegin: {
		{
			"run", "    if len > 0 then boxes[#boxes + 1] =",
			"    call('LTRIM', list, #items, -1)\n    call('HINCRBY', k, 'h.i.' .. port, #items)\n    if len > 0 then boxes[#boxes + 1] =",
		},
		{"tx", "    if (call('HGET', key(t.id), 'h.' .. t.dir", "    if (d.guess or t.dir == 'o') and (call('HGET', key(t.id), 'h.' .. t.dir"},
		{"tx", "    if (seen or call('LLEN',", "    if d.guess and (seen or call('LLEN',"},
		{
			"record", "      call('LTRIM', key(t.id) .. ':' .. t.dir .. ':' .. t.port, t.n, -1)\n      call('HINCRBY', key(t.id), 'h.' .. field, t.n)\n",
			"      if d.guess or t.dir == 'o' then\n" +
				"        call('LTRIM', key(t.id) .. ':' .. t.dir .. ':' .. t.port, t.n, -1)\n        call('HINCRBY', key(t.id), 'h.' .. field, t.n)\n      end\n",
		},
	},
	LostNotification: {{"ready", "  if not first or class < line.class(first) or FULL then line.ring(j.queue, type) end\n", ""}},
	PopNoDue:         {{"run", "  j.wakers = nil\n  local row", "  call('ZREM', P .. 'due', j.id)\n  j.wakers = nil\n  local row"}},
	NoRecheck:        {{"tx", "if j.again and (event == 'complete' or event == 'suspend' or event == 'reschedule') then event = 'requeue' end", ""}},
	NoGuard:          {{"base", "  watching() -- first of all\n", ""}},
	Resurrect:        {{"kin", "    if j.status == S.running then\n      local why", "    if j.status == S.terminated then return place(j, S.queued) end\n    if j.status == S.running then\n      local why"}},
}

// Script returns the text of a file of scripts, broken if it is to be. It panics if what is
// to be replaced is not there: a mutation that changes nothing would be taken for one that
// goes unnoticed.
func Script(file, text string) string {
	return edited(chosen, file, text)
}

func edited(n Name, file, text string) string {
	for _, e := range edits[n] {
		if e.file != file {
			continue
		}
		if found := strings.Count(text, e.old); found != 1 {
			panic(fmt.Sprintf("mutation %s: what it replaces is %d times in %s.lua, instead of once: %s", n, found, file, e.old)) //nolint:forbidigo // as the comment says
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text
}
