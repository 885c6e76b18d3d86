// Package job holds the words that every other part of Weir speaks: the identity
// of a job, what is known about it, the plan that creates a tree of jobs, the
// errors, and the small contracts that a store of jobs fulfils. It knows no Redis.
//
// A Client creates trees and finds jobs; a Handle acts on one job from outside of
// its runs. Both are safe for concurrent use.
package job
