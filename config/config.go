package config

import "time"

// Config is what an operator may set.
//
// The comment of a field is what flags, schema and reference say about it; the tags are
//
//	yaml     the name in the file; flag and environment variable are made of it
//	default  the value where nothing else is said; without the tag it is that of service.DefaultOptions
//	min, max bounds, in the form of the value
//	oneof    the values there are
//	path     a file; in the configuration file it is relative to that file
//	secret   never printed
//	live     taken over while the server runs, whenever the file changes or SIGHUP comes
type Config struct {
	// Addresses to serve gRPC on: host:port, or unix:PATH. An address beyond the machine itself needs TLS, or tls.plaintext.
	Listen []string `yaml:"listen" default:"localhost:7171"`
	// Serve gRPC reflection, which lists the methods. It needs an identity as every other call does.
	Reflection bool `yaml:"reflection" default:"true"`
	// Policies that requests may name, each with the file that holds it: a volcano-scheduler.conf if its name ends in .conf, a policy of
	// the contract if it ends in .yaml, .yml or .json, or the name of a preset after `preset:`. They are replaced all together: if one is
	// faulty, all stay as they are.
	Policies map[string]string `yaml:"policies" path:"yes" live:"yes"`
	// The callers. Without any, every client that reaches the server may call everything.
	Identities []Identity `yaml:"identities" live:"yes"`

	Admin      Admin      `yaml:"admin"`
	TLS        TLS        `yaml:"tls"`
	HTTP       HTTP       `yaml:"http"`
	Extender   Extender   `yaml:"extender"`
	Limit      Limit      `yaml:"limit"`
	Overload   Overload   `yaml:"overload"`
	Deadline   Deadline   `yaml:"deadline"`
	Connection Connection `yaml:"connection"`
	Drain      Drain      `yaml:"drain"`
	Reload     Reload     `yaml:"reload"`
	Log        Log        `yaml:"log"`

	Metrics     Metrics     `yaml:"metrics"`
	DecisionLog DecisionLog `yaml:"decision_log"`
	Shadow      Shadow      `yaml:"shadow"`
}

// HTTP answers the unary calls in JSON, for curl and browsers, by the Connect protocol. Encryption, identities and limits are those of
// gRPC.
type HTTP struct {
	// Address to answer on: host:port, or unix:PATH. Empty: there is none.
	Listen string `yaml:"listen"`
	// Origins of pages that may call from a browser, such as https://example.org; ["*"]: all. Empty: none.
	Origins []string `yaml:"origins"`
	// Calls that are answered at a time; more get a status that says to try again. One identity gets as many as it leaves free: a half, if
	// it is alone.
	Calls int `yaml:"calls" default:"64" min:"1" max:"1000000"`
	// Serve the page below /ui/ too, to look at clusters in a browser. Its files are the same for every reader and hold no data of this
	// server; the calls that it makes need the identity that all calls need.
	UI bool `yaml:"ui" default:"false"`
}

// Admin is the listener for operators, apart from that of clients.
type Admin struct {
	// Address of metrics and probes over HTTP: host:port, or unix:PATH. Empty: there is none. This listener does not authenticate, so it
	// should not be reachable from outside.
	Listen string `yaml:"listen"`
	// Serve Go's profiles below /debug/pprof/ too.
	Profiling bool `yaml:"profiling" default:"false"`
}

// TLS says how connections are encrypted and how clients are authenticated. The files are read again when they change; a faulty one is
// logged and counted, and the server goes on with the last that was good.
type TLS struct {
	// Certificate chain of the server in PEM, its own first. Empty: connections are not encrypted.
	Certificate string `yaml:"certificate" path:"yes"`
	// Private key of the certificate in PEM.
	Key string `yaml:"key" path:"yes"`
	// Certificates in PEM that sign those of clients. Empty: clients show none.
	ClientCA string `yaml:"client_ca" path:"yes"`
	// Whether every client must show a certificate that client_ca signs, or may show a token instead.
	ClientCertificate string `yaml:"client_certificate" default:"required" oneof:"required,optional"`
	// The oldest version of TLS that is accepted.
	MinVersion string `yaml:"min_version" default:"TLSv1.3" oneof:"TLSv1.2,TLSv1.3"`
	// Serve without encryption beyond the machine itself. Only for where something else encrypts, such as a service mesh.
	Plaintext bool `yaml:"plaintext" default:"false"`
}

// Identity is a caller, or several that count as one.
type Identity struct {
	// Name of the identity in logs and quotas.
	Name string `yaml:"name"`
	// SPIFFE IDs in the client's certificate; a last segment * stands for any number of segments.
	SPIFFE []string `yaml:"spiffe"`
	// DNS names in the client's certificate; a first label * stands for any one label.
	DNS []string `yaml:"dns"`
	// SHA-256 hashes of bearer tokens, as sha256: and 64 hexadecimal digits; `apportion config token` makes a token and its hash.
	Tokens []string `yaml:"tokens" secret:"yes"`
	// Methods that it may call, by name; ["*"]: all.
	Methods []string `yaml:"methods" default:"*"`
	// Clusters that its snapshots may name; a * at the end stands for any text, "" for snapshots that name none; ["*"]: all.
	Clusters []string `yaml:"clusters" default:"*"`
}

// Extender answers the extender plugin of Volcano over HTTP.
type Extender struct {
	// Address to answer on: host:port, or unix:PATH. Empty: there is none.
	Listen string `yaml:"listen"`
	// Schedulers that ask there: by path, what the extender.urlPrefix of each ends in, the name of the policy that answers it.
	Schedulers map[string]string `yaml:"schedulers"`
	// Paths of schedulers whose answers are counted and logged, and leave the decision to Volcano.
	Shadow []string `yaml:"shadow"`
	// File of users, a line NAME:HEX each; HEX is the SHA-256 of the password. Empty: every client that reaches the address may ask.
	Users string `yaml:"users" path:"yes"`
	// Encrypt with the server's certificate (tls.certificate). The scheduler then asks at https:// and must trust its authority; no
	// certificate is asked of it, for it has none.
	TLS bool `yaml:"tls" default:"false"`
	// Answer unencrypted beyond the machine itself. Volcano sends passwords as they are, so that something else must encrypt.
	Plaintext bool `yaml:"plaintext" default:"false"`
	// How much of what a scheduler sends to open a session may have arrived before it is read; beyond that the scheduler waits.
	BufferBytes Bytes `yaml:"buffer_bytes" default:"16MiB" min:"1MiB" max:"2047GiB"`
	// How long a question waits for a snapshot to be built before it is left to Volcano.
	Wait time.Duration `yaml:"wait" default:"500ms" min:"1ms" max:"1m"`
}

// Limit bounds what one call or identity may take. The error of a call that asks for more names the limit as the setting is named here.
type Limit struct {
	// Largest message received, decompressed. A larger snapshot can be sent in chunks.
	MessageBytes Bytes `yaml:"message_bytes" min:"1KiB" max:"2047MiB"`
	// Largest answer sent.
	AnswerBytes Bytes `yaml:"answer_bytes" min:"1KiB" max:"2047MiB"`
	// Largest answer to a step that asks for derivations (explain), which are larger than what they explain.
	ExplainBytes Bytes `yaml:"explain_bytes" min:"1KiB" max:"2047MiB"`
	// Largest headers of a call, authorization included.
	HeaderBytes Bytes `yaml:"header_bytes" min:"1KiB" max:"16MiB"`
	// All of a message but its snapshot: questions, steps, the policy.
	QuestionBytes Bytes `yaml:"question_bytes" min:"1KiB" max:"2047MiB"`
	// Largest policy within a request.
	PolicyBytes Bytes `yaml:"policy_bytes" min:"1KiB" max:"16MiB"`
	// Steps of one call, or of one batch of a session.
	Steps int `yaml:"steps" min:"1" max:"1000000000"`
	// Work of one call, or of one batch of a session: of opening it, and of its steps. A unit is about one amount of one resource that is
	// compared or added, a few nanoseconds; what a question costs grows with the queues, jobs, tasks, nodes and dimensions it goes through,
	// and with the rounds of a division.
	Work int `yaml:"work" min:"1000" max:"1000000000000000"`
	// Memory in which a call or session keeps what a rollback may undo.
	UndoBytes Bytes `yaml:"undo_bytes" min:"1KiB" max:"2047GiB"`

	// Names of resources in a snapshot. With cpu and memory, named or not, there may be 64.
	Dimensions int `yaml:"dimensions" min:"1" max:"64"`
	// Nodes in a snapshot.
	Nodes int `yaml:"nodes" min:"1" max:"1000000000"`
	// Node sets in a snapshot.
	NodeSets int `yaml:"node_sets" min:"1" max:"1000000000"`
	// Queues in a snapshot.
	Queues int `yaml:"queues" min:"1" max:"1000000000"`
	// How deep queues may be nested.
	QueueDepth int `yaml:"queue_depth" min:"1" max:"1000000000"`
	// Jobs in a snapshot, and those that the steps of one call or batch add.
	Jobs int `yaml:"jobs" min:"1" max:"1000000000"`
	// Task groups of all jobs together.
	Groups int `yaml:"groups" min:"1" max:"1000000000"`
	// Tasks given one by one; what is only counted costs nothing.
	Tasks int `yaml:"tasks" min:"1" max:"1000000000"`
	// Longest name or uid.
	TextBytes Bytes `yaml:"text_bytes" min:"128B" max:"1MiB"`

	// Largest snapshot sent in chunks.
	SnapshotBytes Bytes `yaml:"snapshot_bytes" min:"1KiB" max:"2047GiB"`
	// Chunks of one snapshot.
	Chunks int `yaml:"chunks" min:"1" max:"1000000000"`
	// Memory for all snapshots that are being received in chunks at a time. One identity gets as much as it leaves free: a half, if it is
	// alone.
	ReceivingBytes Bytes `yaml:"receiving_bytes" min:"1KiB" max:"2047GiB"`
	// Longest time for a snapshot to come in chunks.
	UploadTime time.Duration `yaml:"upload_time" min:"1s" max:"24h"`
	// Memory for the compiled snapshots that are held, to be named by digest; the least recently used go first.
	CacheBytes Bytes `yaml:"cache_bytes" min:"1KiB" max:"2047GiB"`
	// Memory for those of one identity: of its own the least recently used go first.
	IdentityBytes Bytes `yaml:"identity_bytes" min:"1KiB" max:"2047GiB"`

	// Sessions open at a time.
	Sessions int `yaml:"sessions" min:"1" max:"1000000"`
	// Sessions open at a time of one identity.
	IdentitySessions int `yaml:"identity_sessions" min:"1" max:"1000000"`
	// Memory for open sessions: what was compiled for them, once for each identity, and what they change. One identity gets as much as it
	// leaves free: a half, if it is alone.
	SessionBytes Bytes `yaml:"session_bytes" min:"1KiB" max:"2047GiB"`
	// Batches of one session that may be unanswered; the server reads no further.
	PendingBatches int `yaml:"pending_batches" min:"1" max:"100000"`
	// How long a session may last; its client is told to move a minute before.
	SessionTime time.Duration `yaml:"session_time" min:"1s" max:"8760h"`
	// How long a session may go without a question.
	SessionIdle time.Duration `yaml:"session_idle" min:"1s" max:"8760h"`
}

// Overload says how work is admitted where more comes than can be done. Callers share by identity, those without one by address: the one
// that had least processor time comes first, and its calls that decide before those that simulate, whose time counts four times.
type Overload struct {
	// Calls and batches that are worked on at a time. 0: as many as there are processors.
	Running int `yaml:"running" max:"10000"`
	// Calls and batches that may begin beyond those, one of each caller that has none under way. Work that ran for more than 2 ms makes way
	// for them. 0: 4 for each of overload.running.
	Reserve int `yaml:"reserve" max:"10000"`
	// Memory that those may take together, by an estimate made before any is taken. A caller that has something under way gets no more than
	// it leaves free. An eighth is for calls that take at most an eighth of that.
	Memory Bytes `yaml:"memory" min:"1MiB" max:"2047GiB"`
	// Calls and batches that may wait for their turn.
	Waiting int `yaml:"waiting" min:"1" max:"1000000"`
	// How long they may wait. Then they are refused, with a RetryInfo.
	Wait time.Duration `yaml:"wait" min:"1ms" max:"1m"`
	// Unary calls and uploads that have begun, received or not. Each may take 128 KiB beside overload.receiving.
	Calls int `yaml:"calls" min:"1" max:"1000000"`
	// Memory for messages from when their length is known until they are answered; what is not part of a snapshot counts 64 times, as it
	// takes more once it is decoded. One identity gets as much as it leaves free: a half, if it is alone.
	Receiving Bytes `yaml:"receiving" min:"128KiB" max:"2047GiB"`
	// Memory for answers from when they are made until the transport has sent them, which is when clients have read all but a little of
	// them. Calls are refused while there is none. One identity gets as much as it leaves free: a half, if it is alone.
	Answers Bytes `yaml:"answers" min:"256KiB" max:"2047GiB"`
}

// Deadline bounds how long things may take.
type Deadline struct {
	// Longest time for a unary call, and for each batch of a session, whatever deadline its caller sets.
	Call time.Duration `yaml:"call" min:"1ms" max:"24h"`
	// Longest time for the message of a unary call to come.
	Message time.Duration `yaml:"message" min:"1ms" max:"24h"`
	// Longest time for a client to read an answer. Its connection is closed then.
	Answer time.Duration `yaml:"answer" min:"1ms" max:"24h"`
	// Longest time for a new connection to become one, the TLS handshake included.
	Handshake time.Duration `yaml:"handshake" min:"100ms" max:"10m"`
}

// Connection says how connections are kept.
type Connection struct {
	// Connections at a time on all addresses together. Beyond them, a new connection takes the place of one that never had a call, or that
	// had none for a minute; where all are in use it waits, and the server is not ready.
	Maximum int `yaml:"maximum" default:"10000" min:"1" max:"10000000"`
	// Connections at a time from one IP address, beyond which the same holds within the address, and a new one is closed where all are in
	// use. The addresses of an IPv6 /64 count as one; connections over Unix sockets are not counted. Raise it where a proxy stands before
	// the server.
	AddressMaximum int `yaml:"address_maximum" default:"1000" min:"1" max:"10000000"`
	// Calls at a time on one connection; more wait at the client.
	Streams int `yaml:"streams" min:"1" max:"1000000"`
	// Calls of one connection that its client may reset, or that are refused by their headers, each second on average over five seconds. A
	// connection with more is closed.
	Resets int `yaml:"resets" min:"1" max:"1000000"`
	// Streams of health (Watch) and reflection at a time on all connections together. The last half is left to callers with less than a
	// half.
	Watches int `yaml:"watches" min:"1" max:"1000000"`
	// Age after which a client is asked to connect anew, so that new replicas get their part; a tenth is added or taken off at random. 0s:
	// never.
	Age time.Duration `yaml:"age" max:"8760h"`
	// How long calls under way on a connection of that age may go on. 0s: until they end.
	Grace time.Duration `yaml:"grace" max:"8760h"`
	// Time without data from a client after which the server pings it. The server closes the connection of a client that does not answer
	// within 20 seconds.
	Ping time.Duration `yaml:"ping" min:"1s" max:"24h"`
	// Time without a call after which a connection is closed. 0s: never.
	Idle time.Duration `yaml:"idle" max:"8760h"`
}

// Drain says how the server ends.
type Drain struct {
	// How long calls are still taken after health says NOT_SERVING, so that load balancers can turn away.
	Delay time.Duration `yaml:"delay" max:"1h"`
	// How long calls under way may then take to end by themselves.
	Time time.Duration `yaml:"time" min:"1ms" max:"24h"`
}

// Reload says when files are read again.
type Reload struct {
	// Read the configuration, policies and TLS files again when they change. Without it, SIGHUP alone does.
	Watch bool `yaml:"watch" default:"true"`
	// How often files are looked at even if no change was told, as on network file systems.
	Interval time.Duration `yaml:"interval" default:"1m" min:"100ms" max:"24h"`
}

// Log says what is logged, to standard error.
type Log struct {
	// The least severe entries that are logged.
	Level string `yaml:"level" default:"info" oneof:"debug,info,warn,error"`
	// The form of an entry.
	Format string `yaml:"format" default:"text" oneof:"json,text"`
	// Of entries with one text and level, this many of each second are logged; errors always are.
	SampleFirst int `yaml:"sample_first" default:"100" max:"1000000"`
	// Beyond those, one of so many is logged. 0: all are.
	SampleEvery int `yaml:"sample_every" default:"100" max:"1000000"`
}

// Metrics are served at admin.listen, and sent where OpenTelemetry's environment says.
type Metrics struct {
	// Queues whose shares are shown as gauges, as they were last answered. 0: none.
	Queues int `yaml:"queues" default:"0" max:"10000"`
}

// DecisionLog writes down what was decided, so that it can be explained, and decided again by apportion replay. No call waits for it longer
// than is said here, and it takes no more memory.
type DecisionLog struct {
	// Where entries go, one JSON object each: lines of a file, lines of standard output, or where OpenTelemetry's environment says.
	Sink string `yaml:"sink" default:"none" oneof:"none,file,stdout,otlp"`
	// File of the entries, if they go to one.
	File string `yaml:"file" path:"yes"`
	// Size after which a new file is begun.
	FileBytes Bytes `yaml:"file_bytes" default:"100MiB" min:"4KiB" max:"2047GiB"`
	// Old files that are kept: FILE.1 is the newest.
	Keep int `yaml:"keep" default:"5" min:"1" max:"10000"`
	// Directory in which snapshots and policies are kept by digest, without which nothing can be decided again. Empty: they are not kept.
	Store string `yaml:"store" path:"yes"`
	// Size beyond which the oldest of them are removed.
	StoreBytes Bytes `yaml:"store_bytes" default:"1GiB" min:"1MiB" max:"2047GiB"`
	// Of so many calls and sessions one is logged.
	OneIn int `yaml:"one_in" default:"1" min:"1" max:"1000000000"`
	// What is written of the questions: all, or their digest.
	Questions string `yaml:"questions" default:"full" oneof:"full,digest"`
	// Fields whose texts are masked, as the contract names them (uid, name, queue), or identity, or policy_name.
	Mask []string `yaml:"mask"`
	// Entries that may wait to be written.
	Waiting int `yaml:"waiting" default:"1024" min:"1" max:"10000000"`
	// Memory that they may take, snapshots to be kept included.
	WaitingBytes Bytes `yaml:"waiting_bytes" default:"64MiB" min:"64KiB" max:"2047GiB"`
	// What happens when there is no more room: the newest or the oldest is dropped, or calls wait for block_time before the newest is.
	Drop string `yaml:"drop" default:"newest" oneof:"newest,oldest,block"`
	// How long a call waits for room, if it does.
	BlockTime time.Duration `yaml:"block_time" default:"5ms" min:"1us" max:"10s"`
}

// Shadow decides a share of the calls a second time, by another policy, and counts and logs where the answers differ. No answer
// changes by it.
type Shadow struct {
	// Name of the policy that decides beside the others. Empty: none does.
	Policy string `yaml:"policy"`
	// Name of the policy whose calls are decided again. Empty: those of all policies.
	Of string `yaml:"of"`
	// Of so many of these calls and sessions one is decided again.
	OneIn int `yaml:"one_in" default:"10" min:"1" max:"1000000000"`
	// Calls that may wait for it; more are not decided again.
	Waiting int `yaml:"waiting" default:"64" min:"1" max:"1000000"`
	// Memory that they may take.
	WaitingBytes Bytes `yaml:"waiting_bytes" default:"256MiB" min:"64KiB" max:"2047GiB"`
	// Sessions that are decided beside at a time.
	Sessions int `yaml:"sessions" default:"16" min:"1" max:"100000"`
	// Longest time for one call, or for one batch of a session.
	Time time.Duration `yaml:"time" default:"10s" min:"1ms" max:"1h"`
}
