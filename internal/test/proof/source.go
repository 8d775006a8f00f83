package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
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
	file, err := os.Open(cases)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var list []sourced
	lines := bufio.NewScanner(plain)
	for lines.Buffer(nil, 1<<26); lines.Scan(); {
		var c struct {
			ID       string          `json:"id"`
			Snapshot json.RawMessage `json:"snapshot"`
			Settings struct {
				Base             string            `json:"base"`
				ReserveGuarantee bool              `json:"reserve_guarantee"`
				Quanta           map[string]uint64 `json:"quanta"`
			} `json:"settings"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		settings := &apportionv1.Fair{
			Base:             apportionv1.FairBase(apportionv1.FairBase_value["FAIR_BASE_"+c.Settings.Base]),
			ReserveGuarantee: c.Settings.ReserveGuarantee,
		}
		for name, amount := range c.Settings.Quanta {
			settings.Quanta = append(settings.Quanta, &apportionv1.Quantum{Name: name, Amount: amount})
		}
		f, err := certify(c.Snapshot, settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		list = append(list, sourced{"recorded case", f})
	}
	return list, lines.Err()
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
				if c, err := certify(found, &apportionv1.Fair{}); err == nil && len(c.Divisions) > 0 {
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

// certify divides a cluster by fair.
func certify(snapshot []byte, settings *apportionv1.Fair) (*fair, error) {
	s := &apportionv1.Snapshot{}
	if err := protojson.Unmarshal(snapshot, s); err != nil {
		return nil, err
	}
	m, err := decode.Compile(s)
	if err != nil {
		return nil, err
	}
	plugin := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Fair{Fair: settings}}
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}
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
