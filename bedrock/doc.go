// Package bedrock serves jobs in the way of Bedrock::Jobs: clients create jobs by name, others wait for jobs whose names match a
// pattern, and end them by their number. A job of a client is a root job of Weir, in the queue [Queue], of a type that follows from
// its name; that a client has it is a run in progress. So the surface has no jobs of its own, and any number of processes may serve it.
package bedrock
