package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// check verifies the files in out against the output of make, and runs the programs that this machine can run.
func (r *Release) check(ctx context.Context, out io.Writer) error {
	expected, err := r.sums()
	if err != nil {
		return err
	}
	found, err := os.ReadFile(filepath.Join(r.Out, checksums))
	if err != nil {
		return err
	}
	if !bytes.Equal(expected, found) {
		return errors.New("checksums.txt is not of these files")
	}
	for _, platform := range r.Platforms {
		for _, check := range []func(context.Context, string) error{r.checkBinary, r.checkArchive, r.checkBill, r.checkSizes} {
			if err := check(ctx, platform); err != nil {
				return fmt.Errorf("%s: %w", platform, err)
			}
		}
		fmt.Fprintln(out, "ok", r.name(platform))
	}
	return r.checkImage(ctx, out)
}

// checkBinary checks that a program was built with the expected settings.
func (r *Release) checkBinary(ctx context.Context, platform string) error {
	info, err := buildinfo.ReadFile(r.binary(platform))
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	system, arch, _ := strings.Cut(platform, "/")
	for key, want := range map[string]string{"GOOS": system, "GOARCH": arch, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if settings[key] != want {
			return fmt.Errorf("the binary was built with %s %q, not %q", key, settings[key], want)
		}
	}
	if !r.runsHere(platform) {
		return nil
	}
	said, err := exec.CommandContext(ctx, r.binary(platform), "version").Output() //nolint:gosec // it was built a moment ago
	if err != nil {
		return err
	}
	if line, _, _ := strings.Cut(string(said), "\n"); line != "apportion "+r.Version {
		return fmt.Errorf("the binary calls itself %q", line)
	}
	return nil
}

func (r *Release) runsHere(platform string) bool { return platform == runtime.GOOS+"/"+runtime.GOARCH }

// checkArchive unpacks an archive and compares.
func (r *Release) checkArchive(_ context.Context, platform string) error {
	data, err := os.ReadFile(r.archiveFile(platform))
	if err != nil {
		return err
	}
	unpack := untar
	if strings.HasSuffix(r.archiveFile(platform), ".zip") {
		unpack = unzip
	}
	found, err := unpack(data)
	if err != nil {
		return err
	}
	expected, err := r.entries(r.binary(platform))
	if err != nil {
		return err
	}
	for i := range expected {
		expected[i].name = r.name(platform) + "/" + expected[i].name
	}
	same := func(a, b entry) bool { return a.name == b.name && a.mode == b.mode && bytes.Equal(a.data, b.data) }
	if !slices.EqualFunc(expected, found, same) {
		return errors.New("the archive holds something else")
	}
	return nil
}

func untar(data []byte) ([]entry, error) {
	decompressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return entriesOf(decompressed)
}

// entriesOf are the files of a tar.
func entriesOf(r io.Reader) ([]entry, error) {
	archive := tar.NewReader(r)
	var list []entry
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{header.Name, header.FileInfo().Mode().Perm(), data})
	}
}

func unzip(data []byte) ([]entry, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var list []entry
	for _, file := range archive.File {
		content, err := file.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{file.Name, file.Mode().Perm(), data})
	}
	return list, nil
}

// checkBill compares a bill of materials with the modules in the binary.
func (r *Release) checkBill(_ context.Context, platform string) error {
	data, err := os.ReadFile(r.billFile(platform))
	if err != nil {
		return err
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(r.binary(platform))
	if err != nil {
		return err
	}
	if listed := len(*bom.Components); listed != len(info.Deps)+1 {
		return fmt.Errorf("the bill lists %d components, the binary has %d modules and the standard library", listed, len(info.Deps))
	}
	return nil
}

// checkImage reads the layout as a container runtime would, and starts the program with nothing but the image around it if it may.
func (r *Release) checkImage(ctx context.Context, out io.Writer) error {
	if !slices.ContainsFunc(r.Platforms, func(p string) bool { return strings.HasPrefix(p, "linux/") }) {
		return nil
	}
	index, err := r.released()
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		platform := descriptor.Platform.OS + "/" + descriptor.Platform.Architecture
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		if err := r.checkPlatformImage(ctx, out, platform, image); err != nil {
			return fmt.Errorf("image for %s: %w", platform, err)
		}
	}
	return nil
}

func (r *Release) checkPlatformImage(ctx context.Context, out io.Writer, platform string, image v1.Image) error {
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if file.Config.User != fmt.Sprintf("%d:%d", user, user) || file.OS+"/"+file.Architecture != platform {
		return fmt.Errorf("it is for %s/%s and runs as %q", file.OS, file.Architecture, file.Config.User)
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return err
	}
	files, err := entriesOf(content)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(r.binary(platform))
	if err != nil {
		return err
	}
	if len(layers) != 1 || files[0].name != "apportion" || !bytes.Equal(files[0].data, binary) {
		return errors.New("it does not hold the released binary")
	}
	if !r.runsHere(platform) || os.Geteuid() != 0 {
		fmt.Fprintln(out, "ok image", platform, "(read; to run it takes its platform and root)")
		return nil
	}
	said, err := runIn(ctx, files, file.Config.Entrypoint[0], "version")
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	if !strings.HasPrefix(string(said), "apportion "+r.Version+"\n") {
		return fmt.Errorf("it says %q", said)
	}
	fmt.Fprintln(out, "ok image", platform, "(read, and run as its user with nothing else around)")
	return nil
}

// runIn runs a program with some files as its whole file system, as the image's user.
func runIn(ctx context.Context, files []entry, program string, args ...string) ([]byte, error) {
	root, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // another user is to run what is in it
		return nil, err
	}
	for _, file := range files {
		path := filepath.Join(root, filepath.FromSlash(file.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
			return nil, err
		}
		if err := os.WriteFile(path, file.data, file.mode); err != nil {
			return nil, err
		}
	}
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // that of the image
	command.Dir, command.Env = "/", []string{}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	return command.CombinedOutput()
}
