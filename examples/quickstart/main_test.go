package main

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

func TestTheDocumentShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	document, err := os.ReadFile("../../docs/quickstart.md")
	require.NoError(t, err)
	require.Contains(t, string(document), "```go\n"+string(program)+"```\n")
}

func Example_ask() {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	s, err := service.New(service.Options{Policies: map[string]*apportionv1.Policy{"fair": client.VolcanoDefault()}})
	if err != nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	err = ask(listener.Addr().String())
	end()
	if err != nil || <-served != nil {
		return
	}
	// Output:
	// research 4
	// serving 12
	// evict research-0
	// evict research-1
	// place serving-0 on n1
	// place serving-1 on n1
}
