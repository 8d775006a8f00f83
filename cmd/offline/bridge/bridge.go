//go:build js

// Package bridge gives functions of a Go program to the worker of the page that runs it.
package bridge

import (
	"fmt"
	"syscall/js"
)

// Function takes byte strings and returns one, or an error of which fault makes bytes.
type Function func(arguments [][]byte) ([]byte, error)

// Serve sets globalThis.apportion to the functions by their names, and never returns. A function of the worker takes Uint8Arrays, and
// returns {answer} or {fault}, each a Uint8Array.
func Serve(functions map[string]Function, fault func(error) []byte) {
	table := js.Global().Get("Object").New()
	for name, f := range functions {
		table.Set(name, js.FuncOf(func(_ js.Value, given []js.Value) any {
			arguments := make([][]byte, len(given))
			for i, value := range given {
				arguments[i] = make([]byte, value.Get("length").Int())
				js.CopyBytesToGo(arguments[i], value)
			}
			result := js.Global().Get("Object").New()
			if answer, err := called(f, arguments); err != nil {
				result.Set("fault", toJS(fault(err)))
			} else {
				result.Set("answer", toJS(answer))
			}
			return result
		}))
	}
	js.Global().Set("apportion", table)
	select {}
}

// called calls a function. A panic is an error: the program goes on.
func called(f Function, arguments [][]byte) (answer []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("a fault of this program: %v", reason)
		}
	}()
	return f(arguments)
}

func toJS(data []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(array, data)
	return array
}
