package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// sizes is the row of docs/operations.md that states what a release of linux/amd64 takes, in MB: program, archive, image.
var sizes = regexp.MustCompile(`(?m)^\| size of program, archive, image \|.*\| (\d+) MB, (\d+) MB, (\d+) MB`)

// tolerance is how far a stated size may be from the real one: the profile and the version's length change a few hundredths.
const tolerance = 0.15

// checkSizes compares the sizes that the documents state with those of a release for linux/amd64.
func (r *Release) checkSizes(_ context.Context, platform string) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "docs", "operations.md"))
	if errors.Is(err, fs.ErrNotExist) || platform != "linux/amd64" {
		return nil
	}
	if err != nil {
		return err
	}
	stated := sizes.FindSubmatch(text)
	if stated == nil {
		return errors.New("docs/operations.md states no sizes of program, archive and image")
	}
	image, err := r.imageSize()
	if err != nil {
		return err
	}
	for i, what := range []struct {
		name string
		size int64
	}{{"the program", size(r.binary(platform))}, {"the archive", size(r.archiveFile(platform))}, {"the image", image}} {
		megabytes, err := strconv.ParseFloat(string(stated[i+1]), 64)
		if err != nil {
			return err
		}
		if is := float64(what.size) / 1e6; math.Abs(is-megabytes) > tolerance*is {
			return fmt.Errorf("docs/operations.md states %.0f MB for %s, which has %.1f MB", megabytes, what.name, is)
		}
	}
	return nil
}

// size returns the bytes of a file, 0 if there is none.
func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// imageSize returns the bytes of the compressed layers for linux/amd64.
func (r *Release) imageSize() (int64, error) {
	index, err := r.released()
	if err != nil {
		return 0, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform.Architecture != "amd64" {
			continue
		}
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return 0, err
		}
		layers, err := image.Layers()
		if err != nil {
			return 0, err
		}
		for _, layer := range layers {
			bytes, err := layer.Size()
			if err != nil {
				return 0, err
			}
			total += bytes
		}
	}
	return total, nil
}
