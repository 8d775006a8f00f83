package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// flags returns the arguments of go build, without the names of files: the same for equal sources, wherever they are.
func (r *Release) flags() []string {
	profile := "off"
	if r.Profile != "" {
		profile = r.Profile
	}
	return []string{"build", "-trimpath", "-buildvcs=false", "-pgo=" + profile, "-ldflags", "-s -w -X main.version=" + r.Version}
}

// build compiles the program for a platform and returns where it is.
func (r *Release) build(ctx context.Context, platform string) (string, error) {
	binary, err := filepath.Abs(r.binary(platform))
	if err != nil {
		return "", err
	}
	return binary, r.compile(ctx, platform, binary)
}

// compile compiles the program for a platform into a file.
func (r *Release) compile(ctx context.Context, platform, binary string) error {
	system, arch, _ := strings.Cut(platform, "/")
	//nolint:gosec // the version is matched against a pattern, the platform against a list
	command := exec.CommandContext(ctx, "go", append(r.flags(), "-o", binary, "./cmd/apportion")...)
	command.Dir = r.Root
	// This program is a module outside the workspace that it releases.
	command.Env = append(os.Environ(), "GOWORK=", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	command.Stderr = os.Stderr
	return command.Run()
}

// enclosed are the files of an archive beside the program.
var enclosed = []string{"CHANGELOG.md", "LICENSE", "README.md"}

// entry is a file of an archive.
type entry struct {
	name string
	mode fs.FileMode
	data []byte
}

// entries of a platform's archive, in the order of their names.
func (r *Release) entries(binary string) ([]entry, error) {
	var list []entry
	for _, name := range enclosed {
		data, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name, 0o644, data})
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	pages, err := r.pages()
	if err != nil {
		return nil, err
	}
	list = append(list, entry{filepath.Base(binary), 0o755, data})
	list = append(list, pages...)
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// archive packs a program: zip for windows, tar.gz elsewhere.
func (r *Release) archive(_ context.Context, platform, binary string) error {
	entries, err := r.entries(binary)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	pack := r.pack
	if strings.HasPrefix(platform, "windows/") {
		pack = r.zip
	}
	if err := pack(&packed, r.name(platform), entries); err != nil {
		return err
	}
	return os.WriteFile(r.archiveFile(platform), packed.Bytes(), 0o600)
}

func (r *Release) archiveFile(platform string) string {
	ending := ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		ending = ".zip"
	}
	return filepath.Join(r.Out, r.name(platform)+ending)
}

func (r *Release) pack(w io.Writer, directory string, entries []entry) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{
			Name: directory + "/" + e.name, Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: r.Created, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func (r *Release) zip(w io.Writer, directory string, entries []entry) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: directory + "/" + e.name, Method: zip.Deflate, Modified: r.Created}
		header.SetMode(e.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// sums are the SHA-256 of every file in out itself but signatures, in the form of sha256sum, by name.
func (r *Release) sums() ([]byte, error) {
	var text bytes.Buffer
	err := r.eachFile(func(_, name string, data []byte) error {
		if name != checksums {
			fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), name)
		}
		return nil
	})
	return text.Bytes(), err
}

const checksums = "checksums.txt"

func (r *Release) sum() error {
	text, err := r.sums()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, checksums), text, 0o600)
}
