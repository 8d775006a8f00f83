// Command reference writes what is made of package config: `go run ./config/internal/reference schema` prints the JSON Schema, `go run
// ./config/internal/reference page` docs/configuration.md.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/apportion/apportion/config"
)

//go:embed intro.md
var intro []byte

func main() {
	text, err := write(os.Args[1:])
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(args []string) ([]byte, error) {
	switch {
	case slices.Equal(args, []string{"schema"}):
		return config.Schema()
	case slices.Equal(args, []string{"page"}):
		return slices.Concat(intro, config.Reference()), nil
	}
	return nil, errors.New("usage: reference schema|page")
}
