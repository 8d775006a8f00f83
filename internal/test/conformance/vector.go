package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
)

// message is one message of a vector. Its role is "request", "response" or "status".
type message struct {
	role string
	proto.Message
}

const (
	request  = "request"
	response = "response"
	failure  = "status"
)

// readRequests reads the requests of a vector, which lie in a folder named after their method, in order of their numbers.
func readRequests(path string) ([]proto.Message, error) {
	method, err := methodOf(filepath.Base(filepath.Dir(path)))
	if err != nil {
		return nil, err
	}
	input, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, err
	}
	var requests []proto.Message
	names, err := filepath.Glob(filepath.Join(path, "*."+request+".json"))
	if err != nil || len(names) == 0 {
		return nil, errors.Join(errors.New("no request is there"), err)
	}
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) + 2*strings.Compare(a, b) })
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m := input.New().Interface()
		if err := protojson.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		requests = append(requests, m)
	}
	return requests, nil
}

func methodOf(name string) (protoreflect.MethodDescriptor, error) {
	call := method.Named(name)
	if call == nil {
		return nil, fmt.Errorf("the contract has no method %s", name)
	}
	return call, nil
}

// readPolicies reads the policies that the vectors name: FOLDER/NAME.json is the policy NAME.
func readPolicies(folder string) (map[string]*apportionv1.Policy, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	policies := make(map[string]*apportionv1.Policy, len(names))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		policy := &apportionv1.Policy{}
		if err := protojson.Unmarshal(data, policy); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		policies[strings.TrimSuffix(filepath.Base(name), ".json")] = policy
	}
	return policies, nil
}

// encode returns the files of an exchange by name: each message in protobuf's JSON and in its binary form.
func encode(exchange []message) (map[string][]byte, error) {
	files := make(map[string][]byte, 2*len(exchange))
	for i, m := range exchange {
		name := fmt.Sprintf("%d.%s", i+1, m.role)
		text, err := textOf(m.Message)
		if err != nil {
			return nil, err
		}
		binary, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Message)
		if err != nil {
			return nil, err
		}
		files[name+".json"], files[name+".binpb"] = text, binary
	}
	return files, nil
}

// textOf returns protobuf's JSON, laid out always alike: the library's own spaces are random on purpose.
func textOf(m proto.Message) ([]byte, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
