// Package objects is the one reader of Kubernetes' objects: adapters decide what objects mean, and nothing else.
//
// A Source is a file or a page of a list, in YAML or JSON. It is cut into documents, lists into their items, and each item becomes a tree
// of Values: as much of it as a Shape selects, each value with its position, whichever syntax it had. Trees are read field by field; what
// is wrong becomes a Problem at its file, line and path, and what has no effect a warning.
//
// Most of an object is never read. JSON is scanned by hand and YAML is pruned before it is parsed, which takes a third of the time and a
// tenth of the memory of decoding the whole.
package objects
