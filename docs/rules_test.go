package docs

import (
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	_ "github.com/apportion/apportion/gen/apportion/v1alpha1" // Its messages are of the contract too.
)

// keywords are the words that Python, C++, Java, Rust or TypeScript keep for themselves; Go's are those of go/token.
var keywords = strings.Fields(`
	False None True abstract alignas alignof and as asm assert async auto await become bool boolean box break byte case catch char class concept
	const consteval constexpr constinit continue crate debugger decltype def default del delete do double dyn elif else enum except explicit
	export extends extern false final finally float fn for friend from function gen global goto if impl implements import in inline instanceof
	int interface is lambda let long loop macro match mod move mut mutable native new noexcept nonlocal not null nullptr operator or override
	package pass priv private protected pub public raise ref register requires return self short signed sizeof static strictfp struct super
	switch synchronized template this throw throws trait transient true try typedef typeid typename typeof union unsafe unsigned unsized use
	using var virtual void volatile wchar_t where while with xor yield`)

// irregular are words in the plural that do not end in s.
var irregular = []string{"children", "quanta"}

// eachMessage calls f with every message of the contract.
func eachMessage(f func(m protoreflect.MessageDescriptor)) {
	protoregistry.GlobalTypes.RangeMessages(func(t protoreflect.MessageType) bool {
		if d := t.Descriptor(); strings.HasPrefix(string(d.FullName()), "apportion.v1") {
			f(d)
		}
		return true
	})
}

// `namespace` is allowed. It is a keyword of C++ alone, whose stubs add an underscore, and it is Kubernetes' term.
func TestNoFieldOfTheContractIsAKeyword(t *testing.T) {
	var wrong []string
	eachMessage(func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			name := string(m.Fields().Get(i).Name())
			if slices.Contains(keywords, name) || token.IsKeyword(name) {
				wrong = append(wrong, string(m.Name())+"."+name)
			}
		}
	})
	require.Empty(t, wrong)
}

func TestEveryListOfTheContractIsNamedInThePlural(t *testing.T) {
	var wrong []string
	eachMessage(func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			name := string(f.Name())
			last := name[strings.LastIndex(name, "_")+1:]
			if f.IsList() && !strings.HasSuffix(last, "s") && !slices.Contains(irregular, last) {
				wrong = append(wrong, string(m.Name())+"."+name)
			}
		}
	})
	require.Empty(t, wrong)
}

// What is promised refers to nothing that may still change.
func TestNothingOfTheContractNeedsWhatMayStillChange(t *testing.T) {
	files := 0
	protoregistry.GlobalFiles.RangeFilesByPackage(apportionv1.File_apportion_v1_service_proto.Package(), func(f protoreflect.FileDescriptor) bool {
		files++
		for i := range f.Imports().Len() {
			require.False(t, strings.HasPrefix(string(f.Imports().Get(i).Package()), "apportion.v1alpha"), f.Path())
		}
		return true
	})
	require.Greater(t, files, 10)
}
