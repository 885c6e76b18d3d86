// Package journal accepts payloads in bulk on the disk of this machine, and moves them to Redis, where each becomes one job.
//
// Write appends a block of payloads, with one fsync for all who write at the time, and says which IDs the jobs will have. A reader reserves
// payloads (ReadReserve), fetches them (Read) and acknowledges them (Ack); what it does not acknowledge in time comes again, in order and before newer ones.
// A Mover is such a reader: it creates jobs of payloads in a few round trips, each once however often it repeats that.
//
// # Files
//
// A journal is a directory. Its blocks lie in segments, files that are only appended to, in the order of their names:
//
//	#:Batch date=2020-06-30T01:17:17.123Z,bytes=12345,jobtype=client-job-type,id=…,sum=…,head=…
//	<body as received>
//	#:EndBatch
//
// bytes is the length of the body, and decides where it ends; if the body does not end with a newline, one follows that is not counted. Each
// line of the body is a payload; empty lines and those that begin with # are none. id is that of the first payload's job; sum and head are
// checksums of the body and of the header before it, with a salt from the name of the file, so that no payload can pass for a block.
//
// # Durability
//
// What was acknowledged is on the disk: Write.Wait and Sync return after fsync of the file and, of a new file, of its directory. A process
// that dies leaves at most a block that breaks off, which nobody was told of; it is dropped, whole. Nothing is appended to a file of an earlier process. After
// a failed write or fsync the file is cut back to what was synced, and never written to again. Of a damaged block nothing is read; those around it
// are. A file with damage is kept under the name FILE.damaged when all else in it has been moved.
//
// # Why no library
//
// The format of the file is a contract: it is text that other programs read, so a library with a format of its own would not do. Besides,
// tidwall/wal (v1.1.8 and v1.2.1 were tried) has no checksums, returns an entry with a changed byte as if it were whole, and does not open a
// log whose last entry breaks off.
package journal
