// Package redisconn is how programs name a Redis: URLs of single servers, Sentinels and clusters, their parameters and TLS files,
// how people may see them, and what to do about a handshake that fails.
package redisconn
