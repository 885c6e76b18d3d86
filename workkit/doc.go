// Package workkit serves schedules that other programs keep in the keys of WorkKit: `<name>:jobs`, a hash of jobs as JSON, and
// `<name>:next`, a sorted set of when they are due. What is due is moved into Weir in one script, which launches a tree and puts the entry off to
// its next time: so each time fires once, whatever dies, for any number of listeners. docs/workkit.md tells how to move from WorkKit.
package workkit
