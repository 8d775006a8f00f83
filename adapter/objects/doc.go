// Package objects is the one reader of Kubernetes' objects: adapters decide what objects mean, and nothing else.
//
// A Source is a file or a page of a list, in YAML or JSON. It is cut into documents, lists into their items, and each item becomes a tree
// of Values: as much of it as a Shape selects, each value with its position, whichever syntax it had. Trees are read field by field; what
// is wrong becomes a Problem at its file, line and path, and what has no effect a warning.
//
// A Table has a Row for each kind that an adapter reads: what it is called, how a cluster lists it, the Shape of what is read, and what
// reads it. A row reads the tree, or by Typed a value of Go that is filled from it; whatever decodes such a value may hand it to the same
// function. The Reader accounts for each object: it is read, or left out as Faulty, or of a kind that is not read (Account). A Store holds
// what a watch tells of a cluster, and reads each object once.
//
// Invariants: the table's shape is the union of its rows', because the kind of an object often comes last. A faulty object leaves nothing
// behind (Adapter.Undo). A position belongs to the text as it was given, also where the text was pruned.
//
// Most of an object is never read. JSON is scanned by hand and YAML is pruned before it is parsed, which takes a third of the time and a
// tenth of the memory of decoding the whole.
package objects
