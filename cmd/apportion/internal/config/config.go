// Package config reads the settings of the server from flags, environment variables and a file, in this order of precedence, and completes
// them by their defaults. A setting is declared once, as a field of Config or of a section in package setting; the readers, the JSON Schema
// and docs/configuration.md walk these structs. All faults are reported together, each with its file and line, variable or flag.
//
//	flags := config.AddFlags(command.Flags())
//	settings, err := config.Read(flags.Sources(os.Environ()))
package config

import (
	"time"

	"github.com/apportion/apportion/internal/setting"
)

// Config contains all settings of the server. Package setting describes the tags and comments of the fields.
type Config struct {
	// Addresses to serve gRPC on: host:port, or unix:PATH. An address beyond the machine itself needs TLS, or tls.plaintext.
	Listen []string `yaml:"listen" default:"localhost:7171"`
	// Serve gRPC reflection, which lists the methods. It needs an identity as every other call does.
	Reflection bool `yaml:"reflection" default:"true"`
	// Policies that requests may name, each with its file (.conf, .yaml, .yml or .json): a volcano-scheduler.conf, a dump of the ConfigMap
	// that holds one, or a policy of the contract; or the name of a preset after `preset:`. They are replaced together: if one is faulty,
	// all stay.
	Policies map[string]string `yaml:"policies" path:"yes" live:"yes"`
	// Callers and what each may do. Without any, every client that reaches the server may call everything.
	Identities []Identity `yaml:"identities" live:"yes"`

	Admin      Admin              `yaml:"admin"`
	TLS        TLS                `yaml:"tls"`
	HTTP       setting.HTTP       `yaml:"http"`
	Follow     Follow             `yaml:"follow"`
	Ledger     Ledger             `yaml:"ledger"`
	History    setting.History    `yaml:"history"`
	Extender   setting.Extender   `yaml:"extender"`
	Limit      setting.Limit      `yaml:"limit"`
	Overload   setting.Overload   `yaml:"overload"`
	Deadline   setting.Deadline   `yaml:"deadline"`
	Connection setting.Connection `yaml:"connection"`
	Drain      setting.Drain      `yaml:"drain"`
	Reload     Reload             `yaml:"reload"`
	Log        Log                `yaml:"log"`

	Metrics     Metrics             `yaml:"metrics"`
	DecisionLog setting.DecisionLog `yaml:"decision_log"`
	Shadow      setting.Shadow      `yaml:"shadow"`
}

// Follow keeps a snapshot of a cluster with Volcano or Kueue up to date by watches, which requests may name: Input.snapshot_name.
type Follow struct {
	// Follow the cluster of this pod, or of the kubeconfig. The server is ready once the cluster was read.
	Enabled bool `yaml:"enabled" default:"false"`
	// Name of the snapshot in requests.
	Name string `yaml:"name" default:"cluster"`
	// Label of the cluster in the snapshot, for logs and for identities[].clusters. Empty: none.
	Cluster string `yaml:"cluster"`
	// File of the kubeconfig. Empty: the service account of this pod; outside of a cluster KUBECONFIG or ~/.kube/config.
	Kubeconfig string `yaml:"kubeconfig" path:"yes"`
	// Context of the kubeconfig. Empty: the current one.
	Context string `yaml:"context"`
	// Whose objects are followed: those of Volcano, or those of Kueue for the policy `kueue`.
	System string `yaml:"system" default:"volcano" oneof:"volcano,kueue"`
	// Schedulers whose pods are considered. Not used with Kueue.
	Schedulers []string `yaml:"schedulers" default:"volcano"`
	// Shortest time between two versions of the snapshot. Changes that arrive meanwhile make one version together.
	Interval time.Duration `yaml:"interval" default:"500ms" min:"10ms" max:"1h"`
}

// Ledger remembers what the queues of the followed cluster used, for the policy `fair`: snapshots then state usage, and budgets.
type Ledger struct {
	// File that holds the ledger; it is made if there is none. One process at a time uses it. Empty: there is no ledger, and snapshots
	// state no usage.
	File string `yaml:"file" path:"yes"`
	// Name of the cluster that the ledger is about. A ledger of another cluster is refused. Empty: the uid of the namespace kube-system, if
	// the server may get it.
	Cluster string `yaml:"cluster"`
	// Length of an epoch, whole seconds. Usage is stated anew when an epoch begins. A file keeps the length it began with.
	Epoch time.Duration `yaml:"epoch" default:"6h" min:"1s" max:"365d"`
	// Time after which usage counts half, from 1 to 512 epochs.
	HalfLife time.Duration `yaml:"half_life" default:"7d" min:"1s" max:"36500d"`
	// How long the usage of each epoch is kept for reports and budgets, at least 8 half-lives.
	Retain time.Duration `yaml:"retain" default:"400d" min:"1s" max:"36500d"`
	// Longest time until something new is in the file. A kill of the process or of the machine loses at most the use that ended within it.
	Interval time.Duration `yaml:"interval" default:"10s" min:"10ms" max:"1h"`
	// File to which a copy of the ledger is written whenever an epoch begins, for apportion usage: it replaces the one before. Empty: none.
	Copy string `yaml:"copy" path:"yes"`
	// File of the budgets of queues; docs/ledger.md describes it. Empty: there are none.
	Budgets string `yaml:"budgets" path:"yes"`
}

// Admin is the listener for operators, separate from the one for clients.
type Admin struct {
	// Address of metrics and probes over HTTP: host:port, or unix:PATH. Empty: off. This listener does not authenticate, so keep it
	// unreachable from outside.
	Listen string `yaml:"listen"`
	// Also serve Go's profiles at /debug/pprof/.
	Profiling bool `yaml:"profiling" default:"false"`
}

// TLS says how connections are encrypted and how clients are authenticated. The files are read again when they change; a faulty one is
// logged and counted, and the last good one stays in use.
type TLS struct {
	// Certificate chain of the server in PEM, its own certificate first. Empty: connections are not encrypted.
	Certificate string `yaml:"certificate" path:"yes"`
	// Private key of the certificate in PEM.
	Key string `yaml:"key" path:"yes"`
	// CA certificates in PEM that sign client certificates. Empty: client certificates are not requested.
	ClientCA string `yaml:"client_ca" path:"yes"`
	// Whether every client must present a certificate that client_ca signs, or may send a token instead.
	ClientCertificate string `yaml:"client_certificate" default:"required" oneof:"required,optional"`
	// The oldest version of TLS that is accepted.
	MinVersion string `yaml:"min_version" default:"TLSv1.3" oneof:"TLSv1.2,TLSv1.3"`
	// Serve other machines without encryption. Only where something else encrypts, such as a service mesh.
	Plaintext bool `yaml:"plaintext" default:"false"`
}

// Identity is one caller, or several that share permissions and quotas.
type Identity struct {
	// Name of the identity in logs and quotas.
	Name string `yaml:"name"`
	// SPIFFE IDs in the client's certificate; a last segment * stands for any number of segments.
	SPIFFE []string `yaml:"spiffe"`
	// DNS names in the client's certificate; a first label * stands for any one label.
	DNS []string `yaml:"dns"`
	// SHA-256 hashes of bearer tokens, as sha256: and 64 hexadecimal digits; `apportion config token` makes a token and its hash.
	Tokens []string `yaml:"tokens" secret:"yes"`
	// Methods that it may call; ["*"]: all.
	Methods []string `yaml:"methods" default:"*"`
	// Clusters that its snapshots may name; a * at the end matches any text, "" a snapshot without a cluster; ["*"]: all.
	Clusters []string `yaml:"clusters" default:"*"`
	// Snapshots that the server keeps (follow.name) and that it may ask about; a * at the end stands for any text; ["*"]: all.
	Snapshots []string `yaml:"snapshots" default:"*"`
	// Queues that it owns; a * at the end matches any text; ["*"]: all. Of the snapshots that the server keeps, an identity that owns some
	// queues sees these, the queues below them, and their jobs. It sees the sum of all other queues, and may call Explain, EvaluateShares
	// and Simulate with the steps explain, shares, inspect, and order of jobs. Snapshots that it sends are its own.
	Queues []string `yaml:"queues" default:"*"`
}

// Reload says when files are read again.
type Reload struct {
	// Read the configuration, policies and TLS files again when they change. If false, only SIGHUP does.
	Watch bool `yaml:"watch" default:"true"`
	// How often files are checked where the system does not report changes, as on network file systems.
	Interval time.Duration `yaml:"interval" default:"1m" min:"100ms" max:"24h"`
}

// Log says what is logged, to standard error.
type Log struct {
	// Least severity that is logged.
	Level string `yaml:"level" default:"info" oneof:"debug,info,warn,error"`
	// Format of an entry.
	Format string `yaml:"format" default:"text" oneof:"json,text"`
	// Entries per second with the same text and level that are logged; errors always are.
	SampleFirst int `yaml:"sample_first" default:"100" max:"1000000"`
	// Beyond those, one entry of this many is logged. 0: all are.
	SampleEvery int `yaml:"sample_every" default:"100" max:"1000000"`
}

// Metrics are served at admin.listen, and exported as OpenTelemetry's environment variables say.
type Metrics struct {
	// Queues whose last answered shares are exported as gauges. 0: none.
	Queues int `yaml:"queues" default:"0" max:"10000"`
}
