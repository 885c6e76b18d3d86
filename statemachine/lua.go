package statemachine

import (
	"fmt"
	"strings"
)

// Lua returns the state machine as three lines of Lua 5.1, to be put in front
// of a Redis script. It is the same text on every call, so the hash of the
// script does not change. The lines define three locals:
//
//	S        status by its own name: S.queued == "queued"
//	EV       event, then from, then to: EV.begin[S.queued] == S.running;
//	         nil when the status does not accept the event, and [""]
//	         is the status of a job that does not exist yet
//	SETTLED  set of the statuses of which [Status.Settled] is true
func Lua() string {
	var names, settled, events []string
	for _, s := range Statuses() {
		names = append(names, fmt.Sprintf("%s=%q", s, string(s)))
		if s.Settled() {
			settled = append(settled, fmt.Sprintf("%s=true", s))
		}
	}
	for _, r := range rules {
		var moves []string
		for _, from := range r.from {
			moves = append(moves, fmt.Sprintf("%s=%q", luaKey(from), string(r.to)))
		}
		events = append(events, fmt.Sprintf("%s=%s", r.event, luaTable(moves)))
	}
	return "local S=" + luaTable(names) + "\n" +
		"local EV=" + luaTable(events) + "\n" +
		"local SETTLED=" + luaTable(settled) + "\n"
}

func luaTable(fields []string) string {
	return "{" + strings.Join(fields, ",") + "}"
}

// luaKey brackets New, whose empty name is no Lua identifier.
func luaKey(s Status) string {
	if s == New {
		return `[""]`
	}
	return string(s)
}
