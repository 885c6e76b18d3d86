// Package graphfile reads and writes graphs as text.
//
// A [File] is what a graph file says: nodes of named types, edges between their
// ports, ports and parameters of the graph itself. [Parse] reads four formats, and
// a File can be written in each of them:
//
//	.yaml, .yml  Weir's own format, for people
//	.json        the same in JSON, or the graphs of NoFlo and other tools (fbp-graph)
//	.fbp         the language of flowbased/fbp
//
// The package knows no worker types and no ports but those of the graphs in the
// file. What runs is built from a File by others, who find in its elements the
// positions that their own messages need. The package is pure: nothing in it reads
// files, the clock or the network, and all of it is safe for concurrent use as long
// as nobody changes a File that others read.
//
// # Weir's format
//
//	weir: 1
//	name: logs
//	description: Counts status codes
//	params:
//	  file: {type: string, description: the log}
//	  top: 10
//	nodes:
//	  read:
//	    type: lines_in
//	    args:
//	      path: ${file}
//	  parse: {type: map, args: {expr: 'split(it, " ")[8]'}, instances: 4, failure: dead_letter}
//	  count: {type: reduce, args: {top: "${top}"}, in: {seed: {value: 0}, in: {limit: 100}}}
//	edges:
//	  - read.out -> parse.in.out -> count.in
//	  - {from: count.more, to: read.in, feedback: true}
//	outputs:
//	  result: count.out
//
// [Schema] describes every key. An edge is "node.port -> node.port"; in a chain, what
// stands between two arrows is "node.in.out" with the port that the chain enters by and
// the port that it leaves by. A parameter is a map with type, default and description,
// or just its default: the default then gives the type. An input of the graph leads to
// one port or a list of them; so does an output, which several ports may feed.
//
// Graphs under "graphs" have the same shape, without "weir" and with their key as
// their name. They can be the type of a node here, in one another and in the graphs
// below; the nearest of several with one name is meant. No graph may contain itself.
// The args of such a node are the graph's parameters.
//
// # Parameters
//
// ${name} in a text inside args, value, values or default stands for a parameter.
// A text that is nothing else becomes the parameter's value, with its type; inside a
// longer text stands the value's text, which is JSON unless the value is a text itself.
// $${ is a plain ${ (and $$${name} a $ before a value). Keys, descriptions and metadata
// are left alone. [File.Expand] puts the values in.
//
// # YAML
//
// The file is one YAML document whose values are those of JSON. Words like no, on and
// yes are texts, and so are dates and times; only true, false and null (also True,
// TRUE, ~ and the like) are not. A number keeps all its digits. 0x1f, 0o17, 0b11, 1_000
// and .5 are numbers; .inf and .nan are refused, because JSON has neither, and so are
// numbers like 0644, which some read as octal and others do not. Inside { } and [ ] a
// text with ${ must be in quotes: that is YAML's rule. Anchors, aliases and the merge
// key << work, up to 1 MiB of repeated text; tags, directives and "? " keys are refused,
// and so are tabs in texts without quotes. Comments are not kept.
//
// # Limits
//
// A file has at most 4 MiB of valid UTF-8 and is nested at most 100 deep, a YAML file
// has at most 20,000 entries outside of { } and [ ], and at most 1,000 problems are
// reported, after a line that counts the rest. A graph that is built has at most 20,000
// jobs, and 16 MiB of values, with those of the graphs in it.
//
// # NoFlo and .fbp
//
// What one side has and the other has not is kept where the formats allow it, and is
// otherwise an error that names it: nothing is dropped. Nodes are processes, the values
// of a port its initial packets (IIPs), inputs and outputs are inports and outports,
// properties.name, properties.description and the other properties are Name,
// Description and Metadata.
//
//   - Metadata of processes, connections and ports is kept in Metadata, except for its
//     key "weir": there, NoFlo's JSON carries what only Weir has (args, queue, priority,
//     labels, instances, failure, description, limits, defaults, feedback, parameters, nested graphs,
//     further ports of an export). In .fbp it has no place and is refused.
//   - Metadata's key "noflo" carries what only NoFlo has: the groups of a graph, the id of
//     a process whose name is none in Weir (core/Read-2 is called core_Read_2), and the
//     index of an array port: OUT[0] is port out_0 with src_index 0. Two names that become
//     the same one are refused.
//   - Names of ports are converted to lower case, as NoFlo does, unless the graph says
//     caseSensitive; .fbp has no such key, so there the line "# @caseSensitive true" says
//     it. Writing says it only when a port has a capital letter; without, .fbp gets
//     its ports in capitals, as is usual there.
//   - A graph name that is none in Weir stays in Metadata's "name".
//   - Beyond the grammar of flowbased/fbp, a chain may go on in the next line, before or
//     after "->", and tabs are spaces. Commas or line ends must separate statements. A
//     repeated export, a second component for one node and EXPORT= (no longer in
//     the grammar, as it leaves the direction open) are errors.
package graphfile
