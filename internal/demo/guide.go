package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
)

// Concurrency is how many jobs of the shop run at a time: most of them wait.
const Concurrency = 16

// Dir is where a shop is kept if nobody says where: in the cache directory of the user.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "weir", "demo"), err
}

// Guide says what to try with a shop whose page is at an address: its state is kept in a directory, or in the process alone. If the
// shop was there before, ran is when it did something last.
func Guide(page, data string, kept bool, ran time.Time, pid int) string {
	var out strings.Builder
	if !ran.IsZero() {
		fmt.Fprintf(&out, "It goes on with the jobs of %s in %s; weir demo --fresh begins anew.\n\n", term.Style{}.Ago(ran), data)
	}
	fmt.Fprintf(&out, "Open that address in a browser: a shop is running. Or look at it from another terminal:\n\n  export WEIR_SERVER=%s\n", page)
	try := func(command, what string) { fmt.Fprintf(&out, "  %-58s %s\n", command, what) }
	try("weir top demo", "its jobs, live: what waits, what is full, what is tried again")
	try("weir why demo/orders", "suspended by backpressure? that is which edge is full, and why")
	try("weir why demo/notify", "it is rate limited: how long it waits")
	try("weir tree demo", "a spawned job for each payment; parcels is a subgraph")
	try("weir state get demo/approve", "large orders wait for you")
	try(`weir send demo decisions '{"order": 15, "yes": true}'`, "approve one of these")
	try("weir dead list", "broken orders, put aside: weir dead edit corrects one, weir dead requeue takes it back")
	try("weir trigger fire stocktake", "it launches a job each 20 seconds by itself")
	try("weir log demo -n 5", "what runs have read and written")
	if !kept {
		out.WriteString("\nThere is no redis-server here, so the state is in this process, and ends with it.\nWith one (apt install redis-server), kill -9 loses nothing: try that, too.\n")
		return out.String()
	}
	try(fmt.Sprintf("kill -9 %d; weir demo", pid), "nothing is lost or done twice: it goes on where it was")
	fmt.Fprintf(&out, "\nThe state is in %s. Ctrl-C stops; weir demo goes on, weir demo --fresh begins anew.\n", data)
	return out.String()
}
