package example

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/dump"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/lookup"
)

// longest is the most letters of an address: some programs that pass addresses on cut longer ones.
const longest = 8000

// read reads the cluster, and names it as the address does.
func (q *asking) read() error {
	var sources []objects.Source
	for _, sample := range Samples {
		if path.Clean(q.file) == sample.Folder {
			q.from = "sample:" + sample.Name
		}
	}
	switch {
	case q.file != "" && q.snapshot == "":
		base := filepath.Join(q.root, filepath.FromSlash(q.file))
		err := filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
				return err
			}
			data, err := q.text(path.Join(q.file, strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(name, base)), "/")))
			sources = append(sources, objects.Source{Name: filepath.Base(name), Data: data})
			return err
		})
		if err != nil {
			return err
		}
	case q.snapshot != "" && q.file == "":
		data, err := q.text(q.snapshot)
		if err != nil {
			return err
		}
		var document any
		if err := yaml.Unmarshal(data, &document); err != nil {
			return err
		}
		if data, err = json.Marshal(document); err != nil {
			return err
		}
		sources = append(sources, objects.Source{Name: path.Base(q.snapshot), Data: data})
	default:
		return errors.New("the command reads no cluster from files of this project")
	}
	if len(sources) == 0 {
		return fmt.Errorf("%s has no manifests", q.file)
	}
	var err error
	if q.dump, err = dump.Read(sources, time.Time{}, func(int) {}); err != nil {
		return err
	}
	if q.from == "" {
		var all [][]byte
		for _, source := range sources {
			all = append(all, source.Data)
		}
		q.from = "data:" + Pack(bytes.Join(all, []byte("\n---\n")))
	}
	return nil
}

// Pack returns manifests in the form that an address holds.
func Pack(data []byte) string {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	// A buffer takes all that is written to it.
	if err = errors.Join(err, w.Close()); err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// fragment is the address of the view of a question.
func (q *asking) fragment() (string, error) {
	query := url.Values{"policy": {q.policy}, "from": {q.from}}
	view, name, err := q.view(query)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(q.policy, "/.") {
		return "", fmt.Errorf("the page has no policy %s", q.policy)
	}
	if q.resource != "" {
		query.Set("r", q.dimension(q.resource))
	}
	address := "#/" + view
	if name != "" {
		address += "/" + url.PathEscape(name)
	}
	address += "?" + query.Encode()
	if len(address) > longest {
		return "", fmt.Errorf("the address would have %d letters", len(address))
	}
	return address, nil
}

// view returns the view of a question, and the queue or the job that it shows; it sets what else the address says.
func (q *asking) view(query url.Values) (view, name string, err error) {
	indexed := lookup.Of(q.dump.Snapshot)
	named := append([]string{q.verb}, q.names...)
	last := named[len(named)-1]
	form := q.verb
	if len(named) > 1 && (q.verb == "get" || q.verb == "decide") {
		form = q.verb + " " + named[1]
	}
	switch form + strconv.Itoa(len(named)) {
	case "shares1", "get queues2":
		return "cluster", "", nil
	case "shares2", "queue2":
		_, err = indexed.Queue(last)
		return "queue", last, err
	case "pending1":
		return "waiting", "", nil
	case "explain2", "plan2", "decide reclaim3":
		name, err = jobOf(indexed, last)
		return "job", name, err
	case "diff3":
		if strings.ContainsAny(named[1]+named[2], "/.") {
			return "", "", errors.New("the page compares presets")
		}
		query.Set("policy", named[1])
		query.Set("with", named[2])
		return "compare", "", nil
	case "whatif1":
		edits, err := q.edited(indexed)
		query.Set("edit", edits)
		return "whatif", "", err
	}
	return "", "", fmt.Errorf("the page has no view of %s", strings.Join(named, " "))
}

// jobOf returns the name under which the page shows a job, or the job of a task.
func jobOf(indexed *lookup.Snapshot, name string) (string, error) {
	index, err := indexed.JobOrTask(name)
	if err != nil {
		return "", err
	}
	return indexed.JobName(index), nil
}

// dimension returns the full name of a resource.
func (q *asking) dimension(name string) string {
	for _, full := range q.dump.Snapshot.GetDimensions() {
		if strings.HasSuffix(full, "/"+name) {
			return full
		}
	}
	return name
}

// edited returns the changes as the address of What if has them.
func (q *asking) edited(indexed *lookup.Snapshot) (string, error) {
	var list []any
	reader := editing.NewReader(indexed)
	names := indexed.Names(&apportionv1.Basis{Dimensions: indexed.GetDimensions()})
	names.Job, names.Node = indexed.JobName, indexed.NodeName
	for _, text := range q.edits {
		edit, err := reader.Read(text)
		if err != nil {
			return "", err
		}
		if len(reader.Names) > len(indexed.GetDimensions()) {
			return "", fmt.Errorf("the cluster has not what %s sets", text)
		}
		list = append(list, editing.Write(names, edit.Edit))
	}
	if q.job != "" {
		text, err := q.text(q.job)
		if err != nil {
			return "", err
		}
		list = append(list, map[string]string{"job": string(text)})
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
