// Package store is the contract between those who use a store of jobs, which are clients and engines, and those that are one: what
// a store does, and the values that pass between them. Package redisstore keeps jobs in Redis; package httpstore asks another process.
package store
