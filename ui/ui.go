// Package ui is the page: a cluster to look at in a browser. It is written in TypeScript (src) and built into dist, which is checked in and
// embedded, so that Go alone builds the program. The page asks the calls of package web on its own origin, and nothing else.
//
//	mux.Handle(ui.Path, ui.NewHandler(ui.Options{Policies: policies}))
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Path is the URL path of the page.
const Path = "/ui/"

//go:embed dist
var dist embed.FS

// Options say what the page opens with. Every client that reaches the address can read them.
type Options struct {
	// Policies that the page offers.
	Policies []Policy
	// Cluster is shown at once. nil: the page asks for a file.
	Cluster *Cluster
}

// Policy is offered under a name.
type Policy struct {
	// Name stands in addresses of views.
	Name string `json:"name"`
	// Title is what people read.
	Title string `json:"title"`
	// Policy is the message in protobuf's JSON.
	Policy json.RawMessage `json:"policy"`
}

// Cluster is a snapshot that the server holds.
type Cluster struct {
	// Title is what people read.
	Title string
	// Name is that of a snapshot that the server keeps up to date. Then Digest, Read and Snapshot are empty: the page asks for what it
	// needs, and again for each new version.
	Name string
	// Digest names the snapshot in calls.
	Digest string
	// Read is when the snapshot was read.
	Read time.Time
	// Snapshot is the message in protobuf's JSON.
	Snapshot []byte
	// Patches is the path, relative to the page's, of the changes of objects that make a remedy. Empty: there is none.
	Patches string
	// Ledger is the name by which the server knows the ledger of the cluster. Empty: there is none, or the snapshot is kept under Name.
	Ledger string
	// Warnings are sentences about problems in the snapshot.
	Warnings []string
}

// source is the document with the data that the page opens with.
type source struct {
	Policies []Policy `json:"policies"`
	Cluster  *opened  `json:"cluster,omitempty"`
}

type opened struct {
	Title    string   `json:"title"`
	Name     string   `json:"name,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Read     string   `json:"read,omitempty"`
	Snapshot string   `json:"snapshot,omitempty"`
	Patches  string   `json:"patches,omitempty"`
	Ledger   string   `json:"ledger,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Names of the documents that are generated at the start.
const (
	sourceName   = "source.json"
	snapshotName = "snapshot.json"
)

// contentSecurity lets the page load from its own origin only, and run no code that is not in its files.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// document is a file in the form in which it is sent.
type document struct {
	media      string
	tag        string
	plain, zip []byte
}

type handler map[string]*document

// NewHandler returns a handler of everything below Path. It answers GET and HEAD alone and holds nothing that changes.
func NewHandler(o Options) (http.Handler, error) {
	h := handler{}
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return h.add(name, data)
	})
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	s := source{Policies: o.Policies}
	if c := o.Cluster; c != nil {
		s.Cluster = &opened{Title: c.Title, Name: c.Name, Patches: c.Patches, Ledger: c.Ledger, Warnings: c.Warnings}
		if c.Name == "" {
			s.Cluster.Digest, s.Cluster.Read, s.Cluster.Snapshot = c.Digest, c.Read.UTC().Format(time.RFC3339Nano), snapshotName
			if err := h.add(snapshotName, c.Snapshot); err != nil {
				return nil, err
			}
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return h, h.add(sourceName, data)
}

// media are the media types of the page's files. Those of the machine may differ.
var media = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// add takes a file, compressed as well.
func (h handler) add(name string, data []byte) error {
	sum := sha256.Sum256(data)
	d := &document{media: media[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:16]) + `"`, plain: data}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	d.zip = out.Bytes()
	h[name] = d
	return nil
}

// ServeHTTP sends a file.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, Path)
	if below && name == "" {
		name = "index.html"
	}
	d := h[name]
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurity)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !below || d == nil:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	header.Set("Content-Type", d.media)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	data, tag := d.plain, d.tag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		data, tag = d.zip, strings.TrimSuffix(d.tag, `"`)+`-gzip"`
	}
	header.Set("ETag", tag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}
