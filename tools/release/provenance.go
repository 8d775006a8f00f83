package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// provenanceFile states in the form of SLSA 1.0 what the files of a release were made of, and how.
const provenanceFile = "provenance.intoto.json"

// attest writes the provenance of the archives, the bills of materials and the image.
func (r *Release) attest(image string) error {
	statement, err := r.statement(image)
	if err != nil {
		return err
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// The library varies the spaces of its JSON from build to build.
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(value, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, provenanceFile), append(text, '\n'), 0o600)
}

func (r *Release) statement(image string) (*intoto.Statement, error) {
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	err := r.eachFile(func(_, name string, data []byte) error {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if image != "" {
		s.Subject = append(s.Subject, &intoto.ResourceDescriptor{
			Name: imageName, Digest: map[string]string{"sha256": strings.TrimPrefix(image, "sha256:")},
		})
	}
	platforms := make([]any, len(r.Platforms))
	for i, name := range r.Platforms {
		platforms[i] = name
	}
	parameters, err := structpb.NewStruct(map[string]any{
		"version": r.Version, "profile": r.Profile, "platforms": platforms, "epoch": float64(r.Created.Unix()),
	})
	if err != nil {
		return nil, err
	}
	source := &intoto.ResourceDescriptor{Uri: "git+" + project, Digest: map[string]string{"gitCommit": r.Revision}}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: project + "/blob/" + r.Revision + "/tools/scripts/release.sh", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{source, {Name: "go", Annotations: &structpb.Struct{
				Fields: map[string]*structpb.Value{"version": structpb.NewStringValue(runtime.Version())},
			}, Uri: "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")}},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: project + "/tree/" + r.Revision + "/tools/release"}},
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	s.Predicate = &structpb.Struct{}
	return s, protojson.Unmarshal(text, s.Predicate)
}
