package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
)

// TestThePathsOfViolationsBeginAtTheRequest resolves each path in a recorded status from the request of its call: a typed client can, too.
// The parts of uploads are a Snapshot or a Change, and the batches of a session are roots of their own.
func TestThePathsOfViolationsBeginAtTheRequest(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(checkedIn, "*", "*", "*.json"))
	require.NoError(t, err)
	resolved, inputs := map[string]bool{}, map[string]protoreflect.MessageDescriptor{}
	for _, call := range method.Calls() {
		inputs[string(call.Name())] = call.Input()
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		roots := []protoreflect.MessageDescriptor{inputs[name]}
		switch name {
		case "UploadSnapshot":
			roots = append(roots, (&apportionv1.Input{}).ProtoReflect().Descriptor())
		case "RunSession":
			roots = append(roots, (&apportionv1.StepBatch{}).ProtoReflect().Descriptor())
		}
		for _, path := range violationsIn(t, data) {
			resolved[name] = true
			require.True(t, slices.ContainsFunc(roots, func(root protoreflect.MessageDescriptor) bool { return resolves(root, path) }),
				"%s: %s", file, path)
		}
	}
	for _, name := range []string{"EvaluateShares", "Remedies", "Simulate", "RunSession", "UploadSnapshot"} {
		require.True(t, resolved[name], name)
	}
}

// violationsIn returns the paths of violations anywhere in a message.
func violationsIn(t *testing.T, data []byte) []string {
	t.Helper()
	var message any
	require.NoError(t, json.Unmarshal(data, &message))
	var paths []string
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if list, ok := value["fieldViolations"].([]any); ok {
				for _, one := range list {
					if violation, ok := one.(map[string]any); ok {
						path, _ := violation["field"].(string)
						paths = append(paths, path)
					}
				}
			}
			for _, inner := range value {
				visit(inner)
			}
		case []any:
			for _, inner := range value {
				visit(inner)
			}
		}
	}
	visit(message)
	return paths
}

// element is a part of a path.
var element = regexp.MustCompile(`^([a-z0-9_]+)(\[\d+\])?$`)

// resolves reports whether a path names a field, a member of a list, or a oneof. The last part may be the number of an unknown field.
func resolves(of protoreflect.MessageDescriptor, path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		match := element.FindStringSubmatch(part)
		if of == nil || match == nil {
			return false
		}
		if _, err := strconv.Atoi(match[1]); err == nil || of.Oneofs().ByName(protoreflect.Name(match[1])) != nil {
			of = nil
			continue
		}
		field := of.Fields().ByName(protoreflect.Name(match[1]))
		if field == nil || match[2] != "" && !field.IsList() {
			return false
		}
		of = field.Message()
	}
	return true
}
