package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

// newUsageAdopt is `apportion usage adopt`.
func newUsageAdopt(s streams) *cobra.Command {
	var kept keptLedger
	var cluster string
	a := &answering{streams: s}
	command := &cobra.Command{
		Use:   "adopt --ledger FILE --cluster NAME",
		Short: "Say which cluster a ledger is about",
		Long: `Say which cluster a ledger is about, whatever it was about before. A server refuses the ledger of another
cluster, and so does merge. The name is that of the server's setting ledger.cluster, or else the uid of the
cluster's namespace kube-system.`,
		Example: `  apportion usage adopt --ledger usage.ledger --cluster 0d4f3c1e-6a57-4f0b-9c59-5f4f5d1c7e21`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if cluster == "" {
				return errors.New("--cluster: name the cluster")
			}
			o, err := kept.options()
			if err != nil {
				return err
			}
			f, err := file.Open(kept.name, o)
			if err != nil {
				return err
			}
			before := ""
			err = f.Update(func(l *ledger.Ledger) error {
				before = l.Cluster()
				l.Adopt(cluster)
				return nil
			})
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			answer := struct {
				Ledger  string `json:"ledger"`
				Cluster string `json:"cluster"`
				Before  string `json:"before,omitempty"`
			}{kept.name, cluster, before}
			return a.write(answer, func(p *render.Printer) { p.Line("%s is about cluster %s", kept.name, cluster) })
		},
	}
	a.register(command)
	kept.register(command)
	command.Flags().StringVar(&cluster, "cluster", "", "`NAME` of the cluster")
	must(command, command.MarkFlagRequired("cluster"))
	return command
}
