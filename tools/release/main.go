// Command release makes what a release consists of, without a container daemon and without a network: static binaries, archives, bills of
// materials, a manifest for krew, a container image as an OCI layout, the provenance of these, checksums, signatures. Equal sources make equal
// bytes.
//
//	release make  -root . -out dist -version v0.1.0 -epoch 1767225600 [-platforms linux/amd64,…]
//	release check -out dist -version v0.1.0 [-public minisign.pub]
//	release sign  -out dist -version v0.1.0 -key minisign.key
//	release push  -out dist registry.example.org/apportion:0.1.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// Release describes the files of a release and their place.
type Release struct {
	// Root of the sources, Out for what is made.
	Root, Out string
	// Profile is the file that the compiler optimizes for, below Root; empty for none.
	Profile string
	// Version as it is stamped, with the `v` of a tag.
	Version string
	// Revision is the commit.
	Revision string
	// Created is the time that is recorded in all files; it is not the time at which they are made.
	Created time.Time
	// Platforms as os/arch.
	Platforms []string
}

// platforms that are released.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say make, check, sign or push")
	}
	r := Release{}
	var epoch int64
	var wanted, key, public string
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	flags.StringVar(&r.Root, "root", ".", "root of the sources")
	flags.StringVar(&r.Profile, "profile", "", "profile for the compiler, below the root")
	flags.StringVar(&r.Out, "out", "dist", "directory for what is made")
	flags.StringVar(&r.Version, "version", "", "version to stamp, as git describes it")
	flags.StringVar(&r.Revision, "revision", "", "commit that is released")
	flags.Int64Var(&epoch, "epoch", 0, "moment that everything carries, in Unix seconds")
	flags.StringVar(&wanted, "platforms", strings.Join(platforms, ","), "what to build for")
	flags.StringVar(&key, "key", "", "private key of minisign; its password is in "+passwordVariable)
	flags.StringVar(&public, "public", "", "public key of minisign, to check signatures with")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	r.Created, r.Platforms = time.Unix(epoch, 0).UTC(), strings.Split(wanted, ",")
	for _, platform := range r.Platforms {
		if !slices.Contains(platforms, platform) {
			return fmt.Errorf("platform %q is not one of %v", platform, platforms)
		}
	}
	if args[0] != "push" && !versions.MatchString(r.Version) {
		return fmt.Errorf("version %q can be no part of a file's name", r.Version)
	}
	switch args[0] {
	case "make":
		return r.make(ctx, out)
	case "check":
		if public != "" {
			if err := r.checkSignatures(public); err != nil {
				return err
			}
		}
		return r.check(ctx, out)
	case "sign":
		return r.sign(out, key)
	case "push":
		return r.push(ctx, out, flags.Args())
	}
	return fmt.Errorf("%q is none of make, check, sign and push", args[0])
}

var versions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// make makes everything anew.
func (r *Release) make(ctx context.Context, out io.Writer) error {
	if err := r.versionsAgree(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.Out); err != nil {
		return err
	}
	if err := r.manual(ctx); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	for _, platform := range r.Platforms {
		binary, err := r.build(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, step := range []func(ctx context.Context, platform, binary string) error{r.archive, r.describe} {
			if err := step(ctx, platform, binary); err != nil {
				return fmt.Errorf("%s: %w", platform, err)
			}
		}
		fmt.Fprintln(out, r.name(platform))
	}
	digest, err := r.image()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if digest != "" {
		fmt.Fprintln(out, "image", digest)
	}
	if err := r.krew(); err != nil {
		return err
	}
	if err := r.attest(digest); err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	if tags.MatchString(r.Version) {
		fmt.Fprintln(out, "tags", strings.Join(tagsOf(r.Version), " "))
	}
	return r.sum()
}

// name returns the name of a platform's files without the extension.
func (r *Release) name(platform string) string {
	system, arch, _ := strings.Cut(platform, "/")
	return fmt.Sprintf("apportion_%s_%s_%s", strings.TrimPrefix(r.Version, "v"), system, arch)
}

// binary returns the path of the program for a platform.
func (r *Release) binary(platform string) string {
	file := "apportion"
	if strings.HasPrefix(platform, "windows/") {
		file += ".exe"
	}
	return filepath.Join(r.Out, "binary", strings.ReplaceAll(platform, "/", "_"), file)
}

// tags of releases, as opposed to what git says of the commits after them.
var tags = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

var engineVersion = regexp.MustCompile(`(?m)^const Version = "(.*)"$`)

// versionsAgree refuses to release a tag under which the engine calls itself something else: answers carry the engine's version.
func (r *Release) versionsAgree() error {
	if !tags.MatchString(r.Version) {
		return nil
	}
	source, err := os.ReadFile(filepath.Join(r.Root, "engine", "doc.go"))
	if err != nil {
		return err
	}
	found := engineVersion.FindSubmatch(source)
	if found == nil || "v"+string(found[1]) != r.Version {
		return fmt.Errorf("the tag is %s, but the engine's version is %s", r.Version, found)
	}
	return r.modulesAgree()
}
