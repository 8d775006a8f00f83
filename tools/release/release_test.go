package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
	"google.golang.org/protobuf/encoding/protojson"
)

// program prints its version, or writes a manual page that bears the moment of the release.
const program = `package main

import "os"

var version string

func main() {
	if len(os.Args) == 3 && os.Args[1] == "man" {
		os.MkdirAll(os.Args[2], 0o755)
		os.WriteFile(os.Args[2]+"/apportion.1", []byte("at "+os.Getenv("SOURCE_DATE_EPOCH")), 0o600)
		return
	}
	os.Stdout.WriteString("apportion " + version + "\n")
}
`

// sources writes a program that is smaller than the real one, and the files that are released with it.
func sources(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range modules {
		writeFile(t, filepath.Join(root, folder, "go.mod"), "module "+path.Join("github.com/apportion/apportion", folder)+"\n\ngo 1.26.0\n")
	}
	for file, text := range map[string]string{
		"go.work":               "go 1.26.0\n\nuse ./cmd\n",
		"engine/doc.go":         "package engine\n\nconst Version = \"0.1.0\"\n",
		"cmd/apportion/main.go": program,
		"LICENSE":               "Do.\n", "README.md": "Read.\n", "CHANGELOG.md": "New.\n",
	} {
		writeFile(t, filepath.Join(root, file), text)
	}
	return root
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func release(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out)
	return out.String(), err
}

// made makes a release of this machine's platform.
func made(t *testing.T, root string) (out string, args []string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "dist")
	args = []string{
		"-root", root, "-out", out, "-version", "v0.1.0", "-revision", "abc", "-epoch", "1767225600",
		"-platforms", runtime.GOOS + "/" + runtime.GOARCH,
	}
	_, err := release(t, append([]string{"make"}, args...)...)
	require.NoError(t, err)
	return out, args
}

// contents are all files below a directory, by path.
func contents(t *testing.T, directory string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, directory)] = string(data)
		return err
	}))
	return all
}

func TestEqualSourcesMakeEqualBytes(t *testing.T) {
	first, _ := made(t, sources(t))
	second, _ := made(t, sources(t))
	one, other := contents(t, first), contents(t, second)
	require.Greater(t, len(one), 3)
	require.Equal(t, one, other)
	require.Equal(t, "at 1767225600", one["/manual/apportion.1"])
}

func TestWhatWasMadePassesTheCheck(t *testing.T) {
	_, args := made(t, sources(t))
	said, err := release(t, append([]string{"check"}, args...)...)
	require.NoError(t, err)
	require.Contains(t, said, "ok apportion_0.1.0_")
	if runtime.GOOS == "linux" {
		require.Contains(t, said, "ok image linux/")
	}
}

func TestTheManifestForKrewNamesEachArchive(t *testing.T) {
	out, _ := made(t, sources(t))
	manifest, err := os.ReadFile(filepath.Join(out, "krew.yaml"))
	require.NoError(t, err)
	archives, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		data, err := os.ReadFile(archive)
		require.NoError(t, err)
		require.Contains(t, string(manifest), "/releases/download/v0.1.0/"+filepath.Base(archive)+"\n")
		require.Contains(t, string(manifest), fmt.Sprintf("sha256: %x\n", sha256.Sum256(data)))
	}
}

func TestTheManifestForKrewHasASemanticVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0": "v0.1.0", "v0.1.0-3-gda988ce": "v0.1.0-3-gda988ce", "da988ce": "v0.0.0-gda988ce", "0123456-dirty": "v0.0.0-g0123456-dirty", "v1": "v0.0.0-gv1",
	} {
		r := &Release{Version: version}
		require.Equal(t, want, r.semantic())
		require.True(t, semver.IsValid(r.semantic()))
	}
}

func TestTheLicenceOfAModuleIsReadFromItsText(t *testing.T) {
	names, err := licenceOf(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Equal(t, []string{"Apache-2.0"}, names)
	names, err = licenceOf(t.TempDir())
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestTheProvenanceNamesEachFileAndTheSource(t *testing.T) {
	out, _ := made(t, sources(t))
	text, err := os.ReadFile(filepath.Join(out, provenanceFile))
	require.NoError(t, err)
	statement := &intoto.Statement{}
	require.NoError(t, protojson.Unmarshal(text, statement))
	require.NoError(t, statement.Validate())
	var names []string
	for _, subject := range statement.GetSubject() {
		names = append(names, subject.GetName())
		if data, err := os.ReadFile(filepath.Join(out, subject.GetName())); err == nil {
			require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), subject.GetDigest()["sha256"])
		}
	}
	name := "apportion_0.1.0_" + runtime.GOOS + "_" + runtime.GOARCH
	require.Contains(t, names, name+".cdx.json")
	require.Contains(t, names, name+".tar.gz")
	source := statement.GetPredicate().GetFields()["buildDefinition"].GetStructValue().GetFields()["resolvedDependencies"].GetListValue().GetValues()[0]
	require.Equal(t, "abc", source.GetStructValue().GetFields()["digest"].GetStructValue().GetFields()["gitCommit"].GetStringValue())
}

func TestSignaturesAreThoseOfTheKey(t *testing.T) {
	const password = "a password"
	out, args := made(t, sources(t))
	directory := t.TempDir()
	public, private, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	encrypted, err := minisign.EncryptKey(password, private)
	require.NoError(t, err)
	text, err := private.MarshalText()
	require.NoError(t, err)
	publicText, err := public.MarshalText()
	require.NoError(t, err)
	keys := map[string][]byte{"plain.key": text, "encrypted.key": encrypted, "minisign.pub": publicText}
	for name, data := range keys {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), data, 0o600))
	}
	check := append([]string{"check", "-public", filepath.Join(directory, "minisign.pub")}, args...)
	sign := func(key string) error {
		_, err := release(t, append([]string{"sign", "-key", key}, args...)...)
		return err
	}

	_, err = release(t, check...)
	require.ErrorContains(t, err, ".minisig: no such file")
	require.ErrorContains(t, sign(filepath.Join(directory, "encrypted.key")), "encrypted.key: ")
	t.Setenv(passwordVariable, password)
	require.NoError(t, sign(filepath.Join(directory, "encrypted.key")))
	signed := contents(t, out)
	require.Contains(t, signed, "/checksums.txt.minisig")
	require.Contains(t, signed, "/"+provenanceFile+".minisig")
	_, err = release(t, check...)
	require.NoError(t, err)
	require.NoError(t, sign(filepath.Join(directory, "plain.key")))
	require.Equal(t, signed, contents(t, out))

	require.NoError(t, os.WriteFile(filepath.Join(out, "krew.yaml"), []byte("another"), 0o600))
	_, err = release(t, check...)
	require.ErrorContains(t, err, "krew.yaml is not signed by ")
	require.EqualError(t, sign(""), "name the signing key with -key")
}

func TestAChangedFileIsNoticed(t *testing.T) {
	out, args := made(t, sources(t))
	archives, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(archives[0], []byte("another"), 0o600))
	_, err = release(t, append([]string{"check"}, args...)...)
	require.EqualError(t, err, "checksums.txt is not of these files")
}

func TestTheTagAndTheEngineMustAgree(t *testing.T) {
	root := sources(t)
	_, err := release(t, "make", "-root", root, "-out", filepath.Join(t.TempDir(), "dist"), "-version", "v0.2.0")
	require.ErrorContains(t, err, "the tag is v0.2.0, but the engine's version is")
}

func TestWhatCannotBeMadeIsRefused(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"say make, check, sign or push", nil},
		{`"do" is none of make, check, sign and push`, []string{"do", "-version", "v1"}},
		{`platform "plan9/386"`, []string{"make", "-version", "v1", "-platforms", "plan9/386"}},
		{`version "../x"`, []string{"make", "-version", "../x"}},
	} {
		_, err := release(t, test.args...)
		require.ErrorContains(t, err, test.want)
	}
}

func TestTheImageCanBePushedAndPulled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has images")
	}
	out, _ := made(t, sources(t))
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/apportion:0.1.0"
	said, err := release(t, "push", "-out", out, reference)
	require.NoError(t, err)

	parsed, err := name.ParseReference(reference)
	require.NoError(t, err)
	pulled, err := remote.Index(parsed)
	require.NoError(t, err)
	digest, err := pulled.Digest()
	require.NoError(t, err)
	require.Contains(t, said, digest.String())
	image, err := remote.Image(parsed)
	require.NoError(t, err)
	file, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "65532:65532", file.Config.User)
	require.Equal(t, []string{"/apportion"}, file.Config.Entrypoint)
	require.Equal(t, "abc", file.Config.Labels["org.opencontainers.image.revision"])
}
