package convert

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// proposal is what convert proposes: files of YAML, the first of them a policy. Its first fault stays.
type proposal struct {
	files []written
	fault error
}

// written is a file of a proposal.
type written struct {
	name string
	data []byte
}

// propose begins a proposal with a policy.
func propose(policy *apportionv1.Policy) *proposal {
	p := &proposal{}
	raw, err := protojson.Marshal(policy)
	if err == nil {
		raw, err = document.YAML(raw)
	}
	p.fault = err
	const name = "policy.yaml"
	head := "# " + name + ": apportion shares --policy " + name + ", or policies.NAME of a server\n"
	p.files = append(p.files, written{name, append([]byte(head), raw...)})
	return p
}

// add adds a file of documents, which its first line says what to do with.
func (p *proposal) add(name, use string, documents ...any) {
	data := []byte("# " + name + ": " + use + "\n")
	for i, d := range documents {
		one, err := yaml.Marshal(d)
		p.fault = cmp.Or(p.fault, err)
		if i > 0 {
			data = append(data, "---\n"...)
		}
		data = append(data, one...)
	}
	p.files = append(p.files, written{name, data})
}

// addQueues adds the file of the queues.
func (p *proposal) addQueues(queues []any) {
	const name = "queues.yaml"
	p.add(name, "kubectl apply -f "+name, queues...)
}

// write writes the files into a directory, which it makes, or as documents of one stream if that is "". It replaces no file.
func (p *proposal) write(s cli.Streams, into string) error {
	if p.fault != nil {
		return p.fault
	}
	if into != "" {
		const listed = 0o755
		if err := os.MkdirAll(into, listed); err != nil {
			return err
		}
	}
	for i, f := range p.files {
		if into == "" {
			if i > 0 {
				f.data = append([]byte("---\n"), f.data...)
			}
			if _, err := s.Out.Write(f.data); err != nil {
				return err
			}
			continue
		}
		out, err := os.OpenFile(filepath.Join(into, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = out.Write(f.data)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// queueObject returns a Queue of Volcano.
func queueObject(name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name}, "spec": spec,
	}
}
