package redisstore

// NeededCommands are those that Examine asks about.
var NeededCommands = commands
