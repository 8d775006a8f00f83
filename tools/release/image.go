package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user that the program runs as: one without a name, and not root.
const user = 65532

// imageName is the name of the image without a tag: that of the chart's values.
const imageName = "ghcr.io/apportion/apportion"

// imagePath is the OCI layout with an image for each Linux platform.
func (r *Release) imagePath() string { return filepath.Join(r.Out, "image") }

// image writes the layout and returns its index' digest; "" if nothing is released for Linux.
func (r *Release) image() (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	count := 0
	for _, platform := range r.Platforms {
		arch, found := strings.CutPrefix(platform, "linux/")
		if !found {
			continue
		}
		binary, err := os.ReadFile(r.binary(platform))
		if err != nil {
			return "", err
		}
		image, err := r.platformImage(arch, binary)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		count++
	}
	if count == 0 {
		return "", nil
	}
	annotated, ok := mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	if !ok {
		return "", errors.New("an annotated index is no index")
	}
	tag := strings.TrimPrefix(r.Version, "v")
	whole := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: annotated,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": tag,
			// The name under which containerd imports it: kind, k3s and nerdctl.
			"io.containerd.image.name": imageName + ":" + tag,
		}},
	})
	if _, err := layout.Write(r.imagePath(), whole); err != nil {
		return "", err
	}
	digest, err := annotated.Digest()
	return digest.String(), err
}

func (r *Release) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "apportion",
		"org.opencontainers.image.description": "Fair-share decisions for any scheduler, over gRPC",
		"org.opencontainers.image.source":      "https://github.com/apportion/apportion",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.Version,
		"org.opencontainers.image.revision":    r.Revision,
		"org.opencontainers.image.created":     r.Created.Format(time.RFC3339),
	}
}

// platformImage has no base image: the program is static, and reads only the files that it is given.
func (r *Release) platformImage(arch string, binary []byte) (v1.Image, error) {
	layer, err := r.layer(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.Created}, CreatedBy: "tools/release"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: r.Created}
	file.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/apportion"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"7171/tcp": {}, "7172/tcp": {}},
		Labels:       r.annotations(),
	}
	return mutate.ConfigFile(image, file)
}

// layer holds the program, and a name for its user.
func (r *Release) layer(binary []byte) (v1.Layer, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	for _, e := range []entry{
		{"apportion", 0o755, binary},
		{"etc/group", 0o644, fmt.Appendf(nil, "apportion:x:%d:\n", user)},
		{"etc/passwd", 0o644, fmt.Appendf(nil, "apportion:x:%d:%d::/:/none\n", user, user)},
	} {
		header := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: r.Created, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// released is the index of the layout that is for use.
func (r *Release) released() (v1.ImageIndex, error) {
	path, err := layout.FromPath(r.imagePath())
	if err != nil {
		return nil, err
	}
	whole, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := whole.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the layout has %d images", len(manifest.Manifests))
	}
	return whole.ImageIndex(manifest.Manifests[0].Digest)
}

// push sends the image to registries, with the credentials that the container tools of this machine use.
func (r *Release) push(ctx context.Context, out io.Writer, references []string) error {
	index, err := r.released()
	if err != nil {
		return err
	}
	if len(references) == 0 {
		return errors.New("say where to push the image: REGISTRY/NAME:TAG")
	}
	for _, text := range references {
		reference, err := name.ParseReference(text)
		if err != nil {
			return err
		}
		err = remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
		if err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s@%s\n", reference.Context(), digest)
	}
	return nil
}
