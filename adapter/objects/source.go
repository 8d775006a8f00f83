package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apportion/apportion/internal/tree"
)

// Source is one input.
type Source struct {
	// Name is the file name that errors and warnings show.
	Name string
	// Data is the content of the file.
	Data []byte
	// Background is the rest of a cluster: its objects of a kind count only if no other source has one of that kind. The queues root and
	// default, which Volcano makes by itself, count unless another source has a queue of their name. A queue of another source without a
	// state or a weight, as files in a repository have it, has that of the queue of its name here; without one it is open and has the
	// weight 1, as a new queue has.
	Background bool
	// Release is that of the Volcano whose configuration this is, as tagged, such as v1.16.0. Empty: it is unknown.
	Release string
}

// maxFlowRetry is the size up to which a text that begins like JSON but is invalid is read as YAML in flow style.
const maxFlowRetry = 1 << 20

// Document is a part of a source. It converts positions to lines.
type Document struct {
	Name string
	Data []byte
	// First is the number of lines of the source above the document.
	First int
	// Lines says that positions are lines of the source already, as in YAML; else they are offsets into data.
	Lines bool
}

// Line is the line of a position within the source, counted from 1.
func (d *Document) Line(at int) int {
	if d.Lines {
		return at
	}
	return d.First + 1 + bytes.Count(d.Data[:min(at, len(d.Data))], []byte("\n"))
}

// visit is called for each object of a source.
type visit func(*Document, *Value)

// Each visits the objects of a source in order, as far as a shape selects them. The source is a sequence of JSON documents or a stream of
// YAML documents (which may be JSON); each may be a list of objects.
func Each(source Source, sh *Shape, found *Problems, each visit) {
	first := 0
	if tree.Packed(source.Data) {
		found.AddText(&Document{Name: source.Name, Lines: true}, 1, "%s", tree.FaultOfPacked)
		return
	}
	for _, part := range splitDocuments(source.Data) {
		doc := Document{Name: source.Name, Data: part, First: first}
		first += bytes.Count(part, []byte("\n"))
		if begins := firstByte(part); begins == 0 {
			continue
		} else if begins != '{' && begins != '[' {
			doc.Lines = true
			eachYAML(&doc, sh, found, each)
			continue
		}
		if !eachJSON(&doc, sh, found, each) {
			flow := doc
			flow.Lines = true
			eachYAML(&flow, sh, found, each)
		}
	}
}

// splitDocuments cuts a stream at the lines that begin a YAML document. No JSON text and no YAML scalar may hold such a line.
func splitDocuments(data []byte) [][]byte {
	var parts [][]byte
	start := 0
	for at := 0; at < len(data); {
		line := lineAt(data, at)
		if at > start && isMarker(line) {
			parts = append(parts, data[start:at])
			start = at
		}
		at += len(line)
	}
	return append(parts, data[start:])
}

// lineAt is the line that begins at an offset, its end included.
func lineAt(data []byte, at int) []byte {
	if end := bytes.IndexByte(data[at:], '\n'); end >= 0 {
		return data[at : at+end+1]
	}
	return data[at:]
}

// isMarker says whether a line is `---`, alone or before other text.
func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && endsWord(line, len("---"))
}

// firstByte returns the first byte outside space, comments, directives and document markers. 0: there is none.
func firstByte(part []byte) byte {
	for at := 0; at < len(part); {
		line := lineAt(part, at)
		at += len(line)
		if isMarker(line) {
			line = line[len("---"):]
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return line[0]
		}
	}
	return 0
}

// eachJSON visits the objects of JSON documents. It is false, with nothing visited, if the text may be YAML after all.
func eachJSON(doc *Document, sh *Shape, found *Problems, each visit) bool {
	start := 0
	if isMarker(doc.Data) {
		start = len("---")
	}
	if json.Valid(doc.Data[start:]) { // one document, the usual case: no copy
		s := scanner{data: doc.Data, pos: start}
		s.document(doc, sh, each)
		return true
	}
	decoder := json.NewDecoder(bytes.NewReader(doc.Data[start:]))
	for documents := 0; ; documents++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return true
		}
		if _, malformed := errors.AsType[*json.SyntaxError](err); malformed && documents == 0 && len(doc.Data) <= maxFlowRetry {
			return false
		}
		if err != nil {
			found.AddText(doc, start+faultOffset(err, decoder.InputOffset(), len(doc.Data)-start), "not JSON: %v", err)
			return true
		}
		end := start + int(decoder.InputOffset())
		s := scanner{data: doc.Data[:end], pos: end - len(raw)}
		s.document(doc, sh, each)
	}
}

// faultOffset returns the position at which the JSON decoder failed, in a text of this size, having read this much before.
func faultOffset(err error, read int64, size int) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return min(max(int(syntax.Offset), int(read)), size)
	}
	return size
}

// EachJSON visits the object of a JSON text, or the items of the list that it is.
func EachJSON(doc *Document, sh *Shape, found *Problems, each visit) {
	if !json.Valid(doc.Data) {
		found.AddText(doc, 0, "not JSON")
		return
	}
	s := scanner{data: doc.Data}
	s.document(doc, sh, each)
}

// Origin is the position of an object in the input. The zero value is none.
type Origin struct {
	Doc *Document
	At  int
}

// String gives file:line.
func (o Origin) String() string {
	if o.Doc == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", o.Doc.Name, o.Doc.Line(o.At))
}

// problem returns a fault of the object as a whole.
func (o Origin) problem(format string, args ...any) Problem {
	p := Problem{Message: fmt.Sprintf(format, args...)}
	if o.Doc != nil {
		p.File, p.Line = o.Doc.Name, o.Doc.Line(o.At)
	}
	return p
}
