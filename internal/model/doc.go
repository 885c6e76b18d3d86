// Package model is tests that go through every order in which a few processes can do something to a few jobs, with a few faults.
//
// They have the real scripts on a real Redis: it is put into a state, one thing happens, and what that makes is a state to go on from, if no
// other order has led to it before. A scope says what there is: a graph, how many engines, who acts from outside, and which faults
// may happen, such as a lost reply, a call that arrives a second time, a dead process, a lease that ends too early, and a Redis that
// restarts without its last writes. In each state each message must lie in a port or be read once, in order; nothing may be held by a run that nobody
// knows; and from each state all work must get done without further faults.
//
// What an engine commits is made here by a few lines (engine_test.go), not by package worker: the tests are of what the scripts hold, whoever calls them.
// TestRules breaks the scripts in known ways, and wants each of these to be seen.
package model
