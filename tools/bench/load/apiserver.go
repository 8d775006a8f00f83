package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// apiServer answers lists and watches of the kinds that a followed cluster has, as an API server does.
type apiServer struct {
	mutex   sync.Mutex
	version int
	// kinds contains the objects by the path of their list.
	kinds map[string]*kindOfObjects
}

// kindOfObjects are the objects of one kind, and all their changes.
type kindOfObjects struct {
	objects map[string]map[string]any
	events  []objectEvent
	// changed is closed by the next event.
	changed chan struct{}
}

type objectEvent struct {
	version int
	text    []byte
}

const (
	// podsPath is the path of the list of pods.
	podsPath = "/api/v1/pods"
	// nameKey is the key of names in objects.
	nameKey = "name"
)

// readCluster returns an API server with the objects of a dump.
func readCluster(directory string) (*apiServer, error) {
	s := &apiServer{kinds: map[string]*kindOfObjects{}}
	for path, file := range map[string]string{
		"/apis/scheduling.k8s.io/v1/priorityclasses":    "priorityclasses.yaml",
		"/apis/scheduling.volcano.sh/v1beta1/queues":    "queues.yaml",
		"/apis/scheduling.volcano.sh/v1beta1/podgroups": "podgroups.yaml",
		"/api/v1/nodes": "nodes.yaml",
		podsPath:        "pods.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(directory, file))
		if err != nil {
			return nil, err
		}
		var list struct {
			Items []map[string]any `yaml:"items"`
		}
		if err := yaml.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		s.kinds[path] = &kindOfObjects{objects: map[string]map[string]any{}, changed: make(chan struct{})}
		for _, object := range list.Items {
			if err := s.set(path, "ADDED", object); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// set adds, changes or deletes an object, by the type of the event.
func (s *apiServer) set(path, event string, object map[string]any) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("an object of %s has no metadata", path)
	}
	s.version++
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	text, err := json.Marshal(map[string]any{"type": event, "object": object})
	if err != nil {
		return err
	}
	kind, key := s.kinds[path], fmt.Sprint(metadata["namespace"], "/", metadata[nameKey])
	if kind.objects[key] = object; event == "DELETED" {
		delete(kind.objects, key)
	}
	kind.events = append(kind.events, objectEvent{s.version, text})
	close(kind.changed)
	kind.changed = make(chan struct{})
	return nil
}

// change changes pods until done is closed: it moves one between phases, adds one that no snapshot can hold, and removes that.
func (s *apiServer) change(done <-chan struct{}) error {
	s.mutex.Lock()
	var pods []map[string]any
	for _, pod := range s.kinds[podsPath].objects {
		pods = append(pods, pod)
	}
	s.mutex.Unlock()
	names := map[string]any{}
	for i := range 70 {
		names["example.com/r"+strconv.Itoa(i)] = "1"
	}
	hostile := map[string]any{
		"metadata": map[string]any{nameKey: "hostile", "namespace": "language", "uid": "hostile"},
		"spec": map[string]any{
			"schedulerName": "volcano",
			"containers":    []any{map[string]any{nameKey: "c", "resources": map[string]any{"requests": names}}},
		},
	}
	for round := 0; ; round++ {
		select {
		case <-done:
			return nil
		case <-time.After(20 * time.Millisecond):
		}
		path, event, object := podsPath, "MODIFIED", pods[round%len(pods)]
		switch round % 10 {
		case 0:
			event, object = "ADDED", hostile
		case 5:
			event, object = "DELETED", hostile
		default:
			s.mutex.Lock()
			object["status"] = map[string]any{"phase": []string{"Running", "Pending", "Succeeded"}[round%3]}
			s.mutex.Unlock()
		}
		if err := s.set(path, event, object); err != nil {
			return err
		}
	}
}

// ServeHTTP answers a list, or a watch, which ends after two seconds.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	kind, ok := s.kinds[r.URL.Path]
	query := r.URL.Query()
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "NotFound")
	case query.Get("sendInitialEvents") == "true":
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	case query.Get("watch") == "true":
		s.watch(w, r, kind)
	default:
		s.list(w, kind)
	}
}

// refuse answers with an error as an API server does.
func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

func (s *apiServer) list(w http.ResponseWriter, kind *kindOfObjects) {
	s.mutex.Lock()
	items := make([]map[string]any, 0, len(kind.objects))
	for _, object := range kind.objects {
		items = append(items, object)
	}
	data, err := json.Marshal(map[string]any{
		"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
	s.mutex.Unlock()
	if err == nil {
		_, _ = w.Write(data)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, kind *kindOfObjects) {
	const lasts = 2 * time.Second
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	flush := http.NewResponseController(w)
	for end := time.After(lasts); ; {
		s.mutex.Lock()
		var texts [][]byte
		// The last events are those that a watch lacks.
		first := len(kind.events)
		for first > 0 && kind.events[first-1].version > from {
			first--
		}
		for _, event := range kind.events[first:] {
			texts, from = append(texts, event.text), event.version
		}
		changed := kind.changed
		s.mutex.Unlock()
		for _, text := range texts {
			if _, err := w.Write(append(text, '\n')); err != nil {
				return
			}
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// kubeconfig writes a file that names an API server.
func kubeconfig(file, address string) error {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{nameKey: "k", "cluster": map[string]any{"server": address}}},
		"contexts": []any{map[string]any{nameKey: "c", "context": map[string]any{"cluster": "k", "user": "u"}}},
		"users":    []any{map[string]any{nameKey: "u", "user": map[string]any{}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
