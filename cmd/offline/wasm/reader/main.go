//go:build js

// Command reader reads the files that a person gives the page without a server, as a program of WebAssembly. Apart from the engine it is as
// large as that, so it is loaded when the first files are given.
//
//	read(name, data, name, data, …) → a document in JSON: policy, preset, patchable, warnings, and the length of the snapshot in JSON;
//	                                  then the snapshot in JSON, then in binary form
//	patches(a SimulateResponse in JSON) → the changes of objects that make its remedies, in JSON
package main

import (
	"encoding/json"
	"syscall/js"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/bridge"
	"github.com/apportion/apportion/cmd/offline/dump"
)

func main() {
	var last *dump.Dump
	bridge.Serve(map[string]bridge.Function{
		"read": func(a [][]byte) ([]byte, error) {
			var sources []objects.Source
			for ; len(a) >= 2; a = a[2:] {
				sources = append(sources, objects.Source{Name: string(a[0]), Data: a[1]})
			}
			progress := js.Global().Get("progress")
			d, err := dump.Read(sources, time.Now(), func(read int) { progress.Invoke(read) })
			if err != nil {
				return nil, err
			}
			last = d
			return d.Encode()
		},
		"patches": func(a [][]byte) ([]byte, error) {
			if last == nil {
				last = &dump.Dump{}
			}
			return last.Patches(a[0])
		},
	}, func(err error) []byte {
		text, fault := json.Marshal(map[string]string{"message": err.Error()})
		if fault != nil {
			return []byte("{}")
		}
		return text
	})
}
