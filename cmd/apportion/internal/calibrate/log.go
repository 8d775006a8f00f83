package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// logged is a log of a real cluster that is measured in place of generated traces.
type logged struct {
	file, manifests, node, queueOf string
	nodes                          int
}

func (l *logged) register(flags *flag.FlagSet) {
	flags.StringVar(&l.file, "trace", "", "CSV or file in Standard Workload Format (.csv, .swf, .gz too) in place of generated traces")
	flags.StringVar(&l.manifests, "cluster", "", "file of manifests of the nodes and queues of that trace")
	flags.IntVar(&l.nodes, "nodes", 0, "number of nodes of that trace, in place of manifests; its queues have equal weights then")
	flags.StringVar(&l.node, "node", "cpu=64,memory=512Gi,"+gpu+"=8", "what each of these nodes offers")
	flags.StringVar(&l.queueOf, "queue-of", "queue", "column of a Standard Workload Format file that tells the queue")
}

// read reads the trace, faulty lines left out.
func (l *logged) read() (*trace.Trace, error) {
	file, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	var in io.Reader = file
	name := strings.TrimSuffix(l.file, ".gz")
	if name != l.file {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	var read *trace.Trace
	switch filepath.Ext(name) {
	case ".swf":
		format := trace.SWF{
			QueueOf: l.queueOf, PerTask: 1, Strictness: trace.Tolerant, Processor: []trace.Amount{{Resource: "cpu", Amount: 1000}},
		}
		read, err = format.Read(l.file, in)
	case ".csv":
		read, err = trace.ReadCSV(l.file, in, trace.Tolerant)
	default:
		return nil, fmt.Errorf("-trace: %s is neither .csv nor .swf", l.file)
	}
	if err != nil {
		return nil, err
	}
	for _, note := range append(read.Faulty.Summary(), read.Notes...) {
		fmt.Fprintln(os.Stderr, "warning:", note)
	}
	if len(read.Jobs) == 0 {
		return nil, errors.New("-trace: there are no jobs")
	}
	return read, nil
}

// cluster is that of the trace.
func (l *logged) cluster(t *trace.Trace) (*apportionv1.Snapshot, error) {
	if l.manifests != "" {
		data, err := os.ReadFile(l.manifests)
		if err != nil {
			return nil, err
		}
		read, err := volcano.ReadManifests([]objects.Source{{Name: l.manifests, Data: data}})
		if err != nil {
			return nil, err
		}
		return read.Snapshot, nil
	}
	if l.nodes < 1 {
		return nil, errors.New("name a file with -cluster, or a number of -nodes")
	}
	s, offers := client.NewSnapshot(), client.Resources{"pods": "10000"}
	for amount := range strings.SplitSeq(l.node, ",") {
		resource, quantity, found := strings.Cut(amount, "=")
		if !found {
			return nil, fmt.Errorf("-node: %q is not RESOURCE=QUANTITY", amount)
		}
		offers[resource] = quantity
	}
	for i := range l.nodes {
		s.Node(client.Node{Name: fmt.Sprintf("n%05d", i), Allocatable: offers})
	}
	for _, queue := range t.Queues() {
		s.Queue(client.Queue{Name: queue, Weight: 1})
	}
	return s.Build()
}

// periods is the number of parts of the time in which forecasts are asked for; those of one depend on each other.
const periods = 10

// logged asks for the forecasts of a real log: those of its third quarter, which the fourth lets come true. The first half is there for
// the history.
func (s *settings) logged(ctx context.Context) ([]*row, int64, error) {
	read, err := s.log.read()
	if err != nil {
		return nil, 0, err
	}
	snapshot, err := s.log.cluster(read)
	if err != nil {
		return nil, 0, err
	}
	length := read.Jobs[len(read.Jobs)-1].Arrival
	horizon := min(length/4, 30*day)
	t := trial{
		snapshot: snapshot, trace: read, runs: s.runs, alone: s.alone, train: length / 2, until: length - horizon, step: s.step,
		horizon: horizon, resource: read.Resources()[0],
	}
	for _, name := range read.Resources() {
		if name == gpu {
			t.resource = gpu
		}
	}
	var rows []*row
	group, ctx := errgroup.WithContext(ctx)
	for _, policy := range policies {
		if !s.measured(policy) {
			continue
		}
		out := &row{trace: filepath.Base(s.log.file), policy: policy, parts: make([][]asked, 1)}
		rows = append(rows, out)
		group.Go(func() error {
			own := t
			own.policy = policy
			list, err := own.run(ctx)
			for i := range list {
				list[i].part = int(periods * (list[i].at - own.train) / max(own.until-own.train+1, 1))
			}
			out.parts[0] = list
			return err
		})
	}
	return rows, horizon, group.Wait()
}
