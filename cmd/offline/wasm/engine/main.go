//go:build js

// Command engine is the engine of the page without a server, as a program of WebAssembly.
//
//	hold(snapshot) → digest
//	call(name, request in JSON) → response in JSON; a fault is {"code", "message", "reason"}
//	binary(name, request) → 0 and the response, or 1 and a google.rpc.Status
//	policy(name, policy in JSON) → nothing
package main

import (
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/cmd/offline"
	"github.com/apportion/apportion/cmd/offline/bridge"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func main() {
	policies := map[string]*apportionv1.Policy{}
	e := offline.NewEngine(policies)
	bridge.Serve(map[string]bridge.Function{
		"hold": func(a [][]byte) ([]byte, error) {
			digest, err := e.Hold(a[0])
			return []byte(digest), err
		},
		"call": func(a [][]byte) ([]byte, error) { return e.Answer(string(a[0]), a[1], offline.JSON) },
		"binary": func(a [][]byte) ([]byte, error) {
			answer, err := e.Answer(string(a[0]), a[1], offline.Binary)
			if err != nil {
				// The first byte tells an answer from a status.
				return append([]byte{1}, offline.FaultStatus(err)...), nil
			}
			return append([]byte{0}, answer...), nil
		},
		"policy": func(a [][]byte) ([]byte, error) {
			policy := &apportionv1.Policy{}
			policies[string(a[0])] = policy
			return nil, protojson.Unmarshal(a[1], policy)
		},
	}, offline.FaultJSON)
}
