// Command apportion-kueue-admission is a controller of Kueue's AdmissionChecks: Workloads start when Apportion admits them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/adapter/kueue/admission"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "apportion-kueue-admission:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := pflag.NewFlagSet("apportion-kueue-admission", pflag.ContinueOnError)
	file := flags.String("config", "", "file with settings in YAML (docs/kueue-admission.md); empty: the defaults")
	kubeconfig := flags.String("kubeconfig", "", "the cluster; empty: that of this pod, or else that of the user's kubeconfig")
	verbose := flags.Bool("verbose", false, "log more")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log)
	settings, err := readSettings(*file)
	if err != nil {
		return err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0 // The API server's own priority and fairness bounds the requests.
	config.UserAgent = "apportion-kueue-admission"
	clients, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	from, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	controller, err := admission.New(settings, from, clients, log)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	if settings.Lease == "" {
		return controller.Run(ctx)
	}
	return lead(ctx, settings.Lease, config, controller.Run)
}

func readSettings(file string) (*admission.Settings, error) {
	if file == "" {
		return admission.ReadSettings(nil)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	settings, err := admission.ReadSettings(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return settings, nil
}

// lead runs while this process holds a Lease. It returns an error when the Lease is lost, so that the process ends and begins anew.
func lead(ctx context.Context, lease string, config *rest.Config, run func(context.Context) error) error {
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(lease, "/")
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	const duration, deadline, retry = 15 * time.Second, 10 * time.Second, 2 * time.Second
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d", host, os.Getpid())},
		},
		LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(ended)
				_ = run(ctx) // It returns only the error of its context, which ends with the Lease.
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	<-ended
	return fmt.Errorf("the lease %s is lost", lease)
}
