package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/hostname"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/web"
	"github.com/apportion/apportion/ui"
)

// looking contains the flags of `apportion ui`.
type looking struct {
	cli.Answering
	input  question.InputFlags
	watch  question.WatchFlags
	listen string
	stay   bool
}

// NewUI is `apportion ui`.
func NewUI(s cli.Streams) *cobra.Command {
	l := &looking{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show a cluster in the browser",
		Long: `Show a cluster in the browser: what each queue holds and deserves, why each job waits, where tasks run, and
what would happen if something were different. The program serves the page on a loopback address, decides
in its own process, and runs until an interrupt. Every user of this machine can open the address.`,
		Example: `  apportion ui -f cluster.yaml
  apportion ui -f examples/clusters/research --policy fair --no-open
  apportion ui --cluster --watch`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return l.run(ctx)
		},
	}
	flags := command.Flags()
	l.input.Register(command)
	l.watch.Register(command)
	flags.Lookup("watch").Usage = "read the cluster again every --interval, and show changes"
	l.Register(command)
	flags.StringVar(&l.listen, "listen", "localhost:0", "loopback `ADDRESS` to serve on; port 0: any free port")
	flags.BoolVar(&l.stay, "no-open", false, "print the address and do not open a browser")
	return command
}

func (l *looking) run(ctx context.Context) error {
	if l.input.PolicyName != "" {
		return errors.New("--policy-name names a policy of a server: use --policy")
	}
	if err := l.watch.Check(&l.input); err != nil {
		return err
	}
	loaded, err := l.input.Load(ctx, l.Streams)
	if err != nil {
		return err
	}
	listener, err := listenLoopback(ctx, l.listen)
	if err != nil {
		return err
	}
	handler, err := l.handler(ctx, loaded)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	const headers = 10 * time.Second
	server := &http.Server{Handler: hostname.Only(nil, handler), ReadHeaderTimeout: headers}
	address := "http://" + listener.Addr().String() + ui.Path
	if err := l.Write(map[string]string{"address": address}, func(p *render.Printer) { p.Line("%s", address) }); err != nil {
		return errors.Join(err, listener.Close())
	}
	if !l.stay {
		if err := openBrowser(ctx, address); err != nil {
			fmt.Fprintf(l.Err, "no browser was opened: %v\n", err)
		}
	}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves the page and its calls.
func (l *looking) handler(ctx context.Context, loaded *question.Loaded) (http.Handler, error) {
	server, err := service.New(service.Options{NoReflection: true, Overload: setting.Overload{Receiving: receiving}})
	if err != nil {
		return nil, err
	}
	policies, err := l.policies(loaded)
	if err != nil {
		return nil, err
	}
	give := l.hold
	mux := http.NewServeMux()
	if l.watch.On {
		give = l.keep
	} else {
		mux.Handle(ui.Path+patchesName, patchesOf(loaded))
	}
	cluster, err := give(ctx, server, loaded)
	if err != nil {
		return nil, err
	}
	for _, warning := range loaded.Warnings {
		cluster.Warnings = append(cluster.Warnings, warning.GetMessage())
	}
	page, err := ui.NewHandler(ui.Options{Policies: policies, Cluster: cluster})
	if err != nil {
		return nil, err
	}
	mux.Handle("/{$}", http.RedirectHandler(ui.Path, http.StatusFound))
	mux.Handle(ui.Path, page)
	mux.Handle("/", uncompressed(web.NewHandler(server, web.Options{})))
	return mux, nil
}

// receiving bounds the memory of messages. It is four times the default of a server, because one caller, who may take half of it, reads the
// causes of all waiting jobs of a large cluster in JSON.
const receiving = 2 << 30

// uncompressed disables compression: to a browser on the same machine, sending an answer takes less time than compressing it.
func uncompressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		next.ServeHTTP(w, r)
	})
}

// hold gives the server the snapshot.
func (l *looking) hold(ctx context.Context, server *service.Server, loaded *question.Loaded) (*ui.Cluster, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(loaded.Snapshot)
	if err != nil {
		return nil, err
	}
	digest, err := server.Hold(ctx, data)
	if err != nil {
		return nil, err
	}
	remembered, err := l.remember(server)
	if err != nil {
		return nil, err
	}
	document, err := protojson.Marshal(loaded.Snapshot)
	return &ui.Cluster{
		Title: l.title(), Digest: digest, Read: time.Now(), Snapshot: document, Patches: patchesName, Ledger: remembered,
	}, err
}

// ledgerName is the name by which the page asks about the ledger of the command line, and of the snapshot that is kept up to date.
const ledgerName = "cluster"

// remember gives the server the ledger in the flags, and returns its name; empty: there is none.
func (l *looking) remember(server *service.Server) (string, error) {
	kept, budgets, err := l.input.Ledger.Read()
	if err != nil || kept == nil {
		return "", err
	}
	server.Remember(ledgerName, kept, budgets)
	return ledgerName, nil
}

// policies returns the given policy, or that of the ConfigMap in the input, and the presets.
func (l *looking) policies(loaded *question.Loaded) ([]ui.Policy, error) {
	presets, err := ui.Presets()
	if err != nil {
		return nil, err
	}
	if name := strings.TrimPrefix(l.input.Policy, "preset:"); name != "" {
		for i, preset := range presets {
			if preset.Name == name {
				presets[0], presets[i] = presets[i], presets[0]
				return presets, nil
			}
		}
	}
	title := filepath.Base(l.input.Policy)
	switch {
	case l.input.Policy == "" && loaded.Configuration == nil:
		return presets, nil
	case l.input.Policy == "":
		title = "Volcano's ConfigMap"
	}
	first, err := ui.NewPolicy("given", title, loaded.Policy)
	return append([]ui.Policy{first}, presets...), err
}

// title returns the displayed name of the cluster.
func (l *looking) title() string {
	name := l.input.Snapshot
	if len(l.input.Files) > 0 {
		name = l.input.Files[0]
	}
	switch name {
	case "-":
		return "stdin"
	case "":
		return "cluster"
	}
	if absolute, err := filepath.Abs(name); err == nil {
		name = absolute
	}
	return strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
}

// listenLoopback listens on an address that other machines cannot reach.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(errors.New("--listen: not a loopback address: "+address), listener.Close())
	}
	return listener, nil
}

// openBrowser opens an address in the browser.
func openBrowser(ctx context.Context, address string) error {
	name, arguments := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, arguments = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	return exec.CommandContext(ctx, name, arguments...).Start() //nolint:gosec // One of three programs, with our own address.
}

// patchesName is the path, below that of the page, of the patches of remedies.
const patchesName = "patches"

// patchesOf answers a POST of a SimulateResponse about the loaded snapshot whose first answer has remedies. It returns for each remedy the
// changes of objects that make it.
func patchesOf(loaded *question.Loaded) http.HandlerFunc {
	const most = 1 << 20
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		var asked apportionv1.SimulateResponse
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		changes := [][]objects.Patch{}
		if answers := asked.GetAnswers(); len(answers) > 0 {
			answer, names := answers[0].GetRemedies(), loaded.Lookup.Names(asked.GetBasis())
			for _, remedy := range answer.GetRemedies() {
				changes = append(changes, loaded.Patches(names, answer.GetJob(), remedy))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(changes)
	}
}
