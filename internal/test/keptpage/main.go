// Command keptpage serves the page with a snapshot that the server keeps, to an identity that sees everything and to one that owns some
// queues. The tests of the page in a browser ask it.
//
//	keptpage [-ledger FILE] [-budgets FILE] SNAPSHOT QUEUE...
//
// It prints the address of the page. The tokens are AdminToken and MemberToken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/ledger/file"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/identity"
	"github.com/apportion/apportion/service/web"
	"github.com/apportion/apportion/ui"
)

// Tokens of the two identities.
const (
	AdminToken  = "token-of-the-administrator"
	MemberToken = "token-of-a-member-of-a-team"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("keptpage", flag.ContinueOnError)
	used, budgets := flags.String("ledger", "", "file of the ledger of the snapshot"), flags.String("budgets", "", "file of its budgets")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("a snapshot is needed, and the queues of the member")
	}
	server, err := newServer(flags.Args()[1:])
	if err != nil {
		return err
	}
	if err := keep(ctx, server, flags.Arg(0)); err != nil {
		return err
	}
	if *used != "" {
		if err := remember(server, *used, *budgets); err != nil {
			return err
		}
	}
	policies, err := ui.Presets()
	if err != nil {
		return err
	}
	page, err := ui.NewHandler(ui.Options{Policies: policies})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(ui.Path, page)
	mux.Handle("/", web.NewHandler(server, web.Options{}))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, "http://"+listener.Addr().String()+ui.Path); err != nil {
		return errors.Join(err, listener.Close())
	}
	const headers = 10 * time.Second
	return (&http.Server{Handler: mux, ReadHeaderTimeout: headers}).Serve(listener)
}

// newServer returns a server that knows an administrator, and a member who owns some queues.
func newServer(queues []string) (*service.Server, error) {
	gate := identity.NewGate(nil)
	all := []string{"*"}
	admin, member := []identity.Hash{identity.HashOf(AdminToken)}, []identity.Hash{identity.HashOf(MemberToken)}
	if err := gate.Admit([]identity.Identity{
		{Name: "admin", Tokens: admin, Methods: all, Clusters: all, Snapshots: all, Queues: all},
		{Name: "member", Tokens: member, Methods: all, Clusters: all, Snapshots: all, Queues: queues},
	}); err != nil {
		return nil, err
	}
	named := func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		return service.WithIdentity(ctx, identity.Of(ctx).Name), nil
	}
	fair, _ := client.Preset("fair")
	return service.New(service.Options{
		Policies: map[string]*apportionv1.Policy{"fair-here": fair}, Own: identity.Own,
		PermitSnapshot: identity.MayAsk, Permit: identity.MayName,
		Tap: []tap.ServerInHandle{gate.Tap, named}, Transport: gate.ServerOptions(),
	})
}

// name is the name of the snapshot.
const name = "research"

// remember lets callers ask about the ledger of the snapshot.
func remember(server *service.Server, used, budgets string) error {
	epoch, err := file.Epoch(used)
	if err != nil {
		return err
	}
	options := ledger.Options{Epoch: epoch}
	read, err := budget.ReadFile(budgets, options)
	if err != nil {
		return err
	}
	kept, err := file.Read(used, options)
	if err != nil {
		return err
	}
	server.Remember(name, kept, read)
	return nil
}

// keep puts the snapshot of a file on the server.
func keep(ctx context.Context, server *service.Server, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	snapshot := &apportionv1.Snapshot{}
	if err := protojson.Unmarshal(data, snapshot); err != nil {
		return err
	}
	if data, err = proto.Marshal(snapshot); err != nil {
		return err
	}
	return server.Keep(name, "", func(view *apportionv1.SnapshotView) {
		view.AsOf, view.Complete = time.Now().UnixNano(), true
	}).Put(ctx, data, &apportionv1.SnapshotView{})
}
