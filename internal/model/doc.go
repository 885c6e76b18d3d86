// Package model is tests that go through every order in which a few processes can do something to a few jobs, with a few faults.
//
// They have the real scripts on a real Redis: it is put into a state, one thing happens, and what that makes is a state to go on from, if no
// other order has led to it before. A scope says what there is: a graph, how many engines, who acts from outside, and which faults
// may happen, such as a lost reply, a call that arrives a second time, a dead process, a lease that ends too early, and a Redis that
// restarts without its last writes. In each state each message must lie in a port or be read once, in order; nothing may be held by a run that nobody
// knows; a job that is ready or runs must be where the sweeper looks, a port may close when all that feed it have ended; and from each state there must be
// an order in which all work gets done without further faults.
//
// What an engine commits is made here by a few lines (engine_test.go), not by package worker: the tests are of what the scripts hold, whoever calls them.
// Not in it: locks, children that runs spawn, failures and tries, timers, limits, patches, and a second shard; redisstore's tests of random histories and the
// chaos rig have these. An engine always asks for jobs here, so what lost notifications cost is not seen.
//
// TestRules breaks the scripts in known ways, and wants each of these to be seen.
package model
