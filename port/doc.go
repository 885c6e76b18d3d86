// Package port holds what a worker and its surroundings agree on about ports.
//
// A port is a named first-in-first-out queue of JSON messages. It has a
// direction and a few options (a limit, a default): its [Spec]. A worker sees
// its ports as struct fields, the typed handles [In] and [Out]:
//
//	type Resize struct {
//		In    port.In[Image]
//		Width port.In[int] `port:"width,default=640"`
//		Thumb port.Out[Image]
//	}
//
// [Describe] finds the handles of such a struct once, by reflection, and
// returns its [Layout]: the specs, a way to bind the handles to the queues of
// one run, and the other exported fields as the arguments of a job.
//
// [Encode], [Decode] and [Check] are the only way a message is made, opened and
// examined. They refuse what JSON libraries usually repair in silence: invalid
// UTF-8, lone surrogates, NaN, trailing data. Integers of any size survive.
//
// The package is pure: it has no clock, starts no goroutine and does no I/O.
// The queues themselves are behind the interfaces [Reader], [Writer] and
// [Binder].
package port
