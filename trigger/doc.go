// Package trigger starts work at the times of a schedule, when messages are published to a channel, or when somebody asks:
// a [Trigger] is a durable job, and each of its firings is one run. So a firing happens exactly once, for any number of
// processes, wherever one dies and whatever its clock says.
//
// A firing writes to the Out port of the trigger, which may be a node of a graph, and launches a new tree if the trigger
// says which: a job of any type, or a graph. The tree is no child of the trigger, and is created once for each firing.
//
// [Add] makes a trigger, [Get] and [List] tell of it, [Pause], [Resume], [Fire], [Change] and [Delete] act on it. All of these are messages to the
// port control of its job, in the order in which they came: what is asked for holds before the next firing.
package trigger
