package redisstore

// NeededCommands are those that Examine asks about.
var NeededCommands = append(append([]string{}, reading...), writing...)
