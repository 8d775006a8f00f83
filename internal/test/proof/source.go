package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/recording"
	"github.com/apportion/apportion/internal/wire"
)

const (
	cases   = "testdata/fair/cases.jsonl.gz"
	vectors = "testdata/conformance/*/*/*.json"
)

// sourced is a certificate and where it is from.
type sourced struct {
	kind        string
	certificate *fair
}

// collect returns the certificates of the recorded cases and those of the conformance vectors' clusters.
func collect() ([]sourced, error) {
	list, err := recorded()
	if err != nil {
		return nil, err
	}
	more, err := conformance()
	return append(list, more...), err
}

func recorded() ([]sourced, error) {
	var list []sourced
	for line, err := range recording.Lines(cases) {
		if err != nil {
			return nil, err
		}
		c, ok := recording.ReadFair(line)
		if !ok {
			continue
		}
		snapshot, policy, err := c.Input()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		f, err := certify(snapshot, policy)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		list = append(list, sourced{"recorded case", f})
	}
	return list, nil
}

// conformance returns the certificates that the vectors have, and those of all clusters in their requests that can be divided.
func conformance() ([]sourced, error) {
	paths, err := filepath.Glob(vectors)
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: there are none", vectors), err)
	}
	var list []sourced
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		each(v, func(name string, found json.RawMessage) {
			var f fair
			switch {
			case name == "snapshot":
				s := &apportionv1.Snapshot{}
				if protojson.Unmarshal(found, s) != nil {
					return
				}
				if c, err := certify(s, fairAlone(&apportionv1.Fair{})); err == nil && len(c.Divisions) > 0 {
					list = append(list, sourced{"cluster of a conformance vector", c})
				}
			case name == "fair" && json.Unmarshal(found, &f) == nil && len(f.Divisions) > 0:
				list = append(list, sourced{"certificate in a conformance vector", &f})
			}
		})
	}
	return list, nil
}

// each calls f with every field of a JSON value that is an object.
func each(v any, f func(name string, value json.RawMessage)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			each(x, f)
		}
	case map[string]any:
		for name, x := range v {
			if _, ok := x.(map[string]any); ok {
				if data, err := json.Marshal(x); err == nil {
					f(name, data)
				}
			}
			each(x, f)
		}
	}
}

// fairAlone is a policy of fair alone.
func fairAlone(settings *apportionv1.Fair) *apportionv1.Policy {
	plugin := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Fair{Fair: settings}}
	return &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}
}

// certify divides a cluster by a policy of fair.
func certify(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) (*fair, error) {
	m, err := decode.Compile(snapshot)
	if err != nil {
		return nil, err
	}
	session, err := wire.Open(m, policy, wire.Options{})
	if err != nil {
		return nil, err
	}
	question := &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}
	answers, err := session.DoAll([]*apportionv1.Step{{Step: question}})
	if err != nil {
		return nil, err
	}
	data, err := protojson.Marshal(answers[0].GetShares())
	if err != nil {
		return nil, err
	}
	var shares struct {
		Plugins []struct {
			Fair *fair `json:"fair"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal(data, &shares); err != nil {
		return nil, err
	}
	return shares.Plugins[0].Fair, nil
}
