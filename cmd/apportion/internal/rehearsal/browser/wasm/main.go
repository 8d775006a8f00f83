//go:build js

// Command wasm rehearses histories in the page without a server, as a program of WebAssembly.
//
//	rehearse(snapshot, settings in JSON, name, trace) → a report in JSON
package main

import (
	"encoding/json"
	"syscall/js"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal/browser"
	"github.com/apportion/apportion/cmd/offline/bridge"
)

func main() {
	bridge.Serve(map[string]bridge.Function{
		"rehearse": func(a [][]byte) ([]byte, error) {
			advance := js.Global().Get("advance")
			return browser.Run(a[0], a[1], string(a[2]), a[3], func(part float64) { advance.Invoke(part) })
		},
	}, func(err error) []byte {
		text, fault := json.Marshal(map[string]string{"message": err.Error()})
		if fault != nil {
			return []byte("{}")
		}
		return text
	})
}
