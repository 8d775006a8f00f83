package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// describe writes the bill of materials of a program in CycloneDX: exactly the modules that the binary lists in its build information.
func (r *Release) describe(ctx context.Context, platform, binary string) error {
	bom, err := r.bill(ctx, platform, binary)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(r.billFile(platform), text.Bytes(), 0o600)
}

func (r *Release) billFile(platform string) string {
	return filepath.Join(r.Out, r.name(platform)+".cdx.json")
}

func (r *Release) bill(ctx context.Context, platform, binary string) (*cyclonedx.BOM, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	subject := r.own(info.Main.Path)
	subject.Type = cyclonedx.ComponentTypeApplication
	subject.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	subject.Properties = &[]cyclonedx.Property{{Name: "platform", Value: platform}, {Name: "vcs:revision", Value: r.Revision}}

	standard := module(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	standard.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "BSD-3-Clause"}}}
	components, needs := []cyclonedx.Component{standard}, []string{standard.BOMRef}
	for _, dependency := range info.Deps {
		component := r.own(dependency.Path)
		if !ours(dependency.Path) {
			component = module(dependency)
			if err := r.license(ctx, &component, dependency); err != nil {
				return nil, err
			}
		}
		components, needs = append(components, component), append(needs, component.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.Created.Format(time.RFC3339), Component: &subject}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &needs}}
	return bom, nil
}

// own is a module of this project as a component.
func (r *Release) own(path string) cyclonedx.Component {
	component := module(&debug.Module{Path: path, Version: r.Version})
	component.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	return component
}

// module is a module of Go as a component.
func module(m *debug.Module) cyclonedx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
	component := cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
		Scope: cyclonedx.ScopeRequired,
	}
	if m.Sum != "" {
		// The hash in go.sum covers a listing of files, not one file.
		component.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return component
}

// serial is a version 8 UUID made of the binary's digest: equal binaries have equal bills.
func serial(sum [sha256.Size]byte) string {
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
