// Package job holds the words that every other part of Weir speaks: the identity
// of a job, what is known about it, the plan that creates a tree of jobs with the options
// of its start, and the errors. It knows neither Redis nor what a store does.
//
// Package client creates jobs and acts on them.
package job
