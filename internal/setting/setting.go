// Package setting declares the settings of a server: each once, with its type, default, bounds and help.
//
// The comment of a field is its help in flags, schema and reference. A line that begins with "Beyond it:" describes the result for a caller
// that exceeds a limit. The tags are
//
//	yaml     the name in the file; flag and environment variable are made of it
//	default  the value if none is given
//	min, max bounds, in the form of the value; without min, zero is a value of its own
//	oneof    the values there are
//	path     a file; in the configuration file it is relative to that file
//	secret   never printed
//	live     a running server uses the new value as soon as the file changes or SIGHUP arrives
package setting

import (
	_ "embed"
	"time"
)

// Source is the text of this file, whose comments are the help of the settings.
//
//go:embed setting.go
var Source []byte

// Limit bounds what one call or identity may use. The error of a call beyond a limit names the setting.
type Limit struct {
	// Largest message received, decompressed. A larger snapshot can be sent in chunks.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED, by the length alone.
	MessageBytes Bytes `yaml:"message_bytes" default:"16MiB" min:"1KiB" max:"2047MiB"`
	// Largest answer sent.
	// Beyond it: OUT_OF_RANGE ANSWER_TOO_LARGE, with what to narrow; texts of reasons count.
	AnswerBytes Bytes `yaml:"answer_bytes" default:"64MiB" min:"1KiB" max:"2047MiB"`
	// Largest answer to a step that asks for derivations (explain), which are larger than what they explain.
	// Beyond it: the step with derivations (explain) fails with OUT_OF_RANGE ANSWER_TOO_LARGE, with what to narrow.
	ExplainBytes Bytes `yaml:"explain_bytes" default:"32MiB" min:"1KiB" max:"2047MiB"`
	// Largest headers of a call, authorization included.
	// Beyond it: gRPC's own refusal of the call; the connection stays.
	HeaderBytes Bytes `yaml:"header_bytes" default:"64KiB" min:"1KiB" max:"16MiB"`
	// Largest message without its snapshot: questions, steps and policy.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED, before decoding.
	QuestionBytes Bytes `yaml:"question_bytes" default:"2MiB" min:"1KiB" max:"2047MiB"`
	// Largest policy within a request.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED, before decoding.
	PolicyBytes Bytes `yaml:"policy_bytes" default:"64KiB" min:"1KiB" max:"16MiB"`
	// Steps of one call, or of one batch of a session.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED, before decoding.
	Steps int64 `yaml:"steps" default:"100000" min:"1" max:"1000000000"`
	// Work of one call, or of one batch of a session, opening included. A unit is about one comparison or addition of one resource
	// amount, a few nanoseconds. The work of a question grows with the queues, jobs, tasks, nodes and dimensions that it visits, and with
	// the rounds of a division.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED, before the work is done; of several steps, the one that exceeds it fails.
	Work int64 `yaml:"work" default:"1000000000" min:"1000" max:"1000000000000000"`
	// Memory in which a call or session keeps what a rollback may undo.
	// Beyond it: the step that would keep more fails with OUT_OF_RANGE LIMIT_EXCEEDED.
	UndoBytes Bytes `yaml:"undo_bytes" default:"256MiB" min:"1KiB" max:"2047GiB"`

	// Resource names in a snapshot. Together with cpu and memory, which always exist, there are at most 64.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Dimensions int64 `yaml:"dimensions" default:"64" min:"1" max:"64"`
	// Nodes in a snapshot.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Nodes int64 `yaml:"nodes" default:"1000000" min:"1" max:"1000000000"`
	// Node sets in a snapshot.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	NodeSets int64 `yaml:"node_sets" default:"100000" min:"1" max:"1000000000"`
	// Queues in a snapshot.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Queues int64 `yaml:"queues" default:"100000" min:"1" max:"1000000000"`
	// Depth of the tree of queues.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	QueueDepth int64 `yaml:"queue_depth" default:"1000" min:"1" max:"1000000000"`
	// Jobs in a snapshot, and those that the steps of one call or batch add.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Jobs int64 `yaml:"jobs" default:"2000000" min:"1" max:"1000000000"`
	// Task groups of all jobs together.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Groups int64 `yaml:"groups" default:"4000000" min:"1" max:"1000000000"`
	// Tasks listed one by one; tasks that are only counted are free.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Tasks int64 `yaml:"tasks" default:"10000000" min:"1" max:"1000000000"`
	// Longest name or uid.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	TextBytes Bytes `yaml:"text_bytes" default:"4KiB" min:"128B" max:"1MiB"`

	// Largest snapshot sent in chunks.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	SnapshotBytes Bytes `yaml:"snapshot_bytes" default:"1GiB" min:"1KiB" max:"2047GiB"`
	// Chunks of one snapshot.
	// Beyond it: OUT_OF_RANGE LIMIT_EXCEEDED.
	Chunks int64 `yaml:"chunks" default:"100000" min:"1" max:"1000000000"`
	// Memory for all snapshots that are being received in chunks. One identity gets as much as it leaves free: a half, if it is
	// alone.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED.
	ReceivingBytes Bytes `yaml:"receiving_bytes" default:"4GiB" min:"1KiB" max:"2047GiB"`
	// Longest time to receive a snapshot in chunks.
	// Beyond it: the call ends with DEADLINE_EXCEEDED LIMIT_EXCEEDED.
	UploadTime time.Duration `yaml:"upload_time" default:"5m" min:"1s" max:"24h"`
	// Memory for compiled snapshots that are held and named by digest; the least recently used go first.
	// Beyond it: the least recently used snapshots are removed.
	CacheBytes Bytes `yaml:"cache_bytes" default:"4GiB" min:"1KiB" max:"2047GiB"`
	// Memory for the held snapshots of one identity; its least recently used go first.
	// Beyond it: the identity's least recently used snapshots are removed; a single snapshot that is larger gets OUT_OF_RANGE
	// LIMIT_EXCEEDED.
	IdentityBytes Bytes `yaml:"identity_bytes" default:"2GiB" min:"1KiB" max:"2047GiB"`

	// Sessions open at a time.
	// Beyond it: RESOURCE_EXHAUSTED LIMIT_EXCEEDED.
	Sessions int `yaml:"sessions" default:"1000" min:"1" max:"1000000"`
	// Sessions open at a time of one identity.
	// Beyond it: RESOURCE_EXHAUSTED LIMIT_EXCEEDED.
	IdentitySessions int `yaml:"identity_sessions" default:"500" min:"1" max:"1000000"`
	// Memory for open sessions: their compiled snapshots, once for each identity, and their changes. One identity gets as much as it
	// leaves free: a half, if it is alone.
	// Beyond it: the session is not opened, or ends, with RESOURCE_EXHAUSTED LIMIT_EXCEEDED.
	SessionBytes Bytes `yaml:"session_bytes" default:"2GiB" min:"1KiB" max:"2047GiB"`
	// Unanswered batches of one session.
	// Beyond it: the server reads the next batch after an answer.
	PendingBatches int `yaml:"pending_batches" default:"64" min:"1" max:"100000"`
	// Longest time of a session.
	// Beyond it: going_away a minute before, then RESOURCE_EXHAUSTED LIMIT_EXCEEDED.
	SessionTime time.Duration `yaml:"session_time" default:"24h" min:"1s" max:"365d"`
	// Longest time of a session without a question.
	// Beyond it: RESOURCE_EXHAUSTED LIMIT_EXCEEDED.
	SessionIdle time.Duration `yaml:"session_idle" default:"15m" min:"1s" max:"365d"`
}

// Overload says how work is admitted when there is more than the server can do. Callers share by identity, or by address without one. The
// caller with the least processor time so far comes first, and its calls that decide before those that simulate, whose time counts four
// times.
type Overload struct {
	// Calls and batches in work at a time. 0: one per processor.
	// Beyond it: calls wait for a turn, up to overload.wait.
	Running int `yaml:"running" default:"0" max:"10000"`
	// Additional calls and batches in work, one for each caller that has none. Work that has run for more than 2 ms pauses for them.
	// 0: four for each of overload.running.
	// Beyond it: calls wait for a turn, up to overload.wait.
	Reserve int `yaml:"reserve" default:"0" max:"10000"`
	// Memory for calls and batches in work, estimated before any is allocated. A caller with work in progress gets at most as much as it
	// leaves free. An eighth is reserved for calls that need at most an eighth of that.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED after overload.wait; a call that needs more than all of it gets OUT_OF_RANGE
	// LIMIT_EXCEEDED.
	Memory Bytes `yaml:"memory" default:"2GiB" min:"1MiB" max:"2047GiB"`
	// Calls and batches that wait for a turn.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED.
	Waiting int `yaml:"waiting" default:"1000" min:"1" max:"1000000"`
	// Longest wait for a turn.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED.
	Wait time.Duration `yaml:"wait" default:"250ms" min:"1ms" max:"1m"`
	// Unary calls and uploads in progress, received or not. Each may use 128 KiB besides overload.receiving.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED, before the message is read; half of the calls are left to other identities.
	Calls int `yaml:"calls" default:"2000" min:"1" max:"1000000"`
	// Memory for messages from when their length is known until they are answered. Bytes outside the snapshot count 64 times, because they
	// take more once decoded. One identity gets as much as it leaves free: a half, if it is alone.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED after overload.wait.
	Receiving Bytes `yaml:"receiving" default:"512MiB" min:"128KiB" max:"2047GiB"`
	// Memory for answers from when they are made until the transport has sent them. One identity gets as much as it leaves free: a half,
	// if it is alone.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED: before the message is read while the book is full, at once where 64 KiB are not free, and
	// after overload.wait for an answer that needs more than is left. A session waits.
	Answers Bytes `yaml:"answers" default:"512MiB" min:"256KiB" max:"2047GiB"`
}

// Deadline bounds the time of calls, messages and handshakes.
type Deadline struct {
	// Longest time for a unary call, and for each batch of a session, even if the caller's deadline is later.
	// Beyond it: DEADLINE_EXCEEDED.
	Call time.Duration `yaml:"call" default:"1m" min:"1ms" max:"24h"`
	// Longest time to receive the message of a unary call. The first message of a session has limit.session_idle, that of an upload
	// limit.upload_time.
	// Beyond it: DEADLINE_EXCEEDED LIMIT_EXCEEDED.
	Message time.Duration `yaml:"message" default:"30s" min:"1ms" max:"24h"`
	// Longest time for a client to read an answer.
	// Beyond it: the connection is closed.
	Answer time.Duration `yaml:"answer" default:"1m" min:"1ms" max:"24h"`
	// Longest time to establish a connection, TLS handshake included.
	// Beyond it: the connection is closed.
	Handshake time.Duration `yaml:"handshake" default:"10s" min:"100ms" max:"10m"`
}

// Connection bounds connections and their lifetime.
type Connection struct {
	// Connections at a time, on all addresses together. A connection is idle if it never had a call, or had none for a minute. While all
	// are in use, the server is not ready.
	// Beyond it: a new connection replaces an idle one; if all are in use, it waits to be accepted.
	Maximum int `yaml:"maximum" default:"10000" min:"1" max:"10000000"`
	// Connections at a time from one IP address. The addresses of an IPv6 /64 count as one; connections over Unix sockets are not counted.
	// Raise it behind a proxy.
	// Beyond it: a new connection replaces an idle one of the address; if all are in use, it is closed.
	AddressMaximum int `yaml:"address_maximum" default:"1000" min:"1" max:"10000000"`
	// Calls at a time on one connection.
	// Beyond it: further calls wait in the client.
	Streams int `yaml:"streams" default:"1000" min:"1" max:"1000000"`
	// Calls of one connection per second, averaged over five seconds, that are wasted: the client resets them before their deadline, or
	// they name no method or show no identity.
	// Beyond it: calls of the connection get RESOURCE_EXHAUSTED with a time to retry; the connection of a client that continues is closed.
	Resets int `yaml:"resets" default:"200" min:"1" max:"1000000"`
	// Streams of health (Watch) and reflection at a time, on all connections together. The last half is left to callers with less than a
	// half.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED.
	Watches int `yaml:"watches" default:"4000" min:"1" max:"1000000"`
	// Names by which clients reach the listeners http, extender and admin, beside IP addresses, localhost, names without a dot, and those
	// of Kubernetes services (NAME.NAMESPACE.svc). They count where callers need neither identity nor password: a web page could make its
	// reader's browser send requests under a name of its own.
	// Beyond it: 421 Misdirected Request.
	Hosts []string `yaml:"hosts"`
	// Age of a connection, a tenth more or less at random, after which the client connects anew, so that new replicas get a share of the
	// calls. 0s: no limit.
	// Beyond it: GOAWAY; the client connects anew.
	Age time.Duration `yaml:"age" default:"30m" max:"365d"`
	// How long calls on a connection of that age may continue. 0s: until they end.
	// Beyond it: calls still under way end with the connection.
	Grace time.Duration `yaml:"grace" default:"0s" max:"365d"`
	// Time without data from a client after which the server pings it.
	// Beyond it: the connection is closed 20 seconds after an unanswered ping.
	Ping time.Duration `yaml:"ping" default:"1m" min:"1s" max:"24h"`
	// Time of a connection without a call. 0s: no limit.
	// Beyond it: GOAWAY; the client connects anew.
	Idle time.Duration `yaml:"idle" default:"15m" max:"365d"`
}

// Drain says how the server stops.
type Drain struct {
	// How long calls are still accepted after health reports NOT_SERVING, so that load balancers can stop sending.
	Delay time.Duration `yaml:"delay" default:"5s" max:"1h"`
	// The time that calls in progress then have to finish.
	Time time.Duration `yaml:"time" default:"25s" min:"1ms" max:"24h"`
}

// HTTP answers the unary calls in JSON, for curl and browsers, by the Connect protocol. Encryption, identities and limits are those of
// gRPC.
type HTTP struct {
	// Address to serve on: host:port, or unix:PATH. Empty: HTTP is off.
	Listen string `yaml:"listen"`
	// Origins of pages that may call from a browser, such as https://example.org; ["*"]: all. Empty: none.
	Origins []string `yaml:"origins"`
	// Calls that are answered at a time; one identity gets as many as it leaves free: a half, if it is alone.
	// Beyond it: RESOURCE_EXHAUSTED OVERLOADED, after the message has arrived.
	Calls int `yaml:"calls" default:"64" min:"1" max:"1000000"`
	// Serve the page for browsers at /ui/. Its files are the same for every reader and contain no data of this server; the calls that it
	// makes need an identity as all calls do.
	UI bool `yaml:"ui" default:"false"`
}

// Extender answers the extender plugin of Volcano over HTTP.
type Extender struct {
	// Address to serve on: host:port, or unix:PATH. Empty: off.
	Listen string `yaml:"listen"`
	// Policies by scheduler: the key is the path at the end of the scheduler's extender.urlPrefix, the value the name of the policy.
	Schedulers map[string]string `yaml:"schedulers"`
	// Paths of schedulers whose decisions are counted and logged only; Volcano decides.
	Shadow []string `yaml:"shadow"`
	// File of users, a line NAME:HEX each; HEX is the SHA-256 of the password. Empty: every client that reaches the address may ask.
	Users string `yaml:"users" path:"yes"`
	// Encrypt with the server's certificate (tls.certificate). The scheduler then uses https:// and must trust the CA. A client
	// certificate is not requested.
	TLS bool `yaml:"tls" default:"false"`
	// Serve other machines without encryption. Volcano sends passwords in clear text, so something else must encrypt.
	Plaintext bool `yaml:"plaintext" default:"false"`
	// Bytes of a scheduler's push that are buffered before they are read. Beyond these the scheduler waits.
	BufferBytes Bytes `yaml:"buffer_bytes" default:"16MiB" min:"1MiB" max:"2047GiB"`
	// How long a question waits for its snapshot to be built. After that Volcano decides.
	Wait time.Duration `yaml:"wait" default:"500ms" min:"1ms" max:"1m"`
}

// DecisionLog records decisions, so that they can be explained, and decided again by apportion replay. Its memory, and the time that a call
// waits for it, are bounded here.
type DecisionLog struct {
	// Where entries go, one JSON object each: a file, standard output, or the OpenTelemetry endpoint of the environment.
	Sink string `yaml:"sink" default:"none" oneof:"none,file,stdout,otlp"`
	// File of the entries, if the sink is file. If another program moves or removes it, as logrotate does, the next entries go to a new
	// one.
	File string `yaml:"file" path:"yes"`
	// Size at which the file is rotated.
	FileBytes Bytes `yaml:"file_bytes" default:"100MiB" min:"4KiB" max:"2047GiB"`
	// Rotated files that are kept: FILE.1 is the newest.
	Keep int `yaml:"keep" default:"5" min:"1" max:"10000"`
	// Directory in which snapshots and policies are kept by digest, which replay needs. Empty: they are not kept.
	Store string `yaml:"store" path:"yes"`
	// Size of the store beyond which the oldest are removed.
	StoreBytes Bytes `yaml:"store_bytes" default:"1GiB" min:"1MiB" max:"2047GiB"`
	// One of this many calls and sessions is logged.
	OneIn int `yaml:"one_in" default:"1" min:"1" max:"1000000000"`
	// Whether questions are logged in full, or only their digest.
	Questions string `yaml:"questions" default:"full" oneof:"full,digest"`
	// Fields whose texts are masked, as the contract names them (uid, name, queue: the lists names, queues, too), or identity, or
	// policy_name.
	Mask []string `yaml:"mask"`
	// Entries that wait to be written.
	Waiting int `yaml:"waiting" default:"1024" min:"1" max:"10000000"`
	// Memory for waiting entries, snapshots for the store included.
	WaitingBytes Bytes `yaml:"waiting_bytes" default:"64MiB" min:"64KiB" max:"2047GiB"`
	// What happens when the buffer is full: the newest or the oldest entry is dropped, or calls wait for block_time before the newest is.
	Drop string `yaml:"drop" default:"newest" oneof:"newest,oldest,block"`
	// How long a call waits for room, if drop is block.
	BlockTime time.Duration `yaml:"block_time" default:"5ms" min:"1us" max:"10s"`
}

// Values of DecisionLog.Questions and DecisionLog.Drop that are not the default.
const (
	QuestionsDigest = "digest"
	DropOldest      = "oldest"
	DropBlock       = "block"
)

// Shadow decides a share of the calls a second time, by another policy, and counts and logs the differences. Callers get the first
// answer only.
type Shadow struct {
	// Name of the policy that decides a second time. Empty: off.
	Policy string `yaml:"policy"`
	// Name of the policy whose calls are decided a second time. Empty: all policies.
	Of string `yaml:"of"`
	// One of this many calls and sessions is decided a second time.
	OneIn int `yaml:"one_in" default:"10" min:"1" max:"1000000000"`
	// Calls that wait for their second decision; more are skipped.
	Waiting int `yaml:"waiting" default:"64" min:"1" max:"1000000"`
	// Memory for waiting calls.
	WaitingBytes Bytes `yaml:"waiting_bytes" default:"256MiB" min:"64KiB" max:"2047GiB"`
	// Sessions that are decided a second time at once.
	Sessions int `yaml:"sessions" default:"16" min:"1" max:"100000"`
	// Longest time for the second decision of one call, or of one batch of a session.
	Time time.Duration `yaml:"time" default:"10s" min:"1ms" max:"1h"`
}

// History says since when jobs of the followed cluster wait for what, and what its queues deserved and held over time.
type History struct {
	// Keep the history of the followed cluster.
	Enabled bool `yaml:"enabled" default:"true"`
	// Name of the policy, one of policies, that finds the causes. Empty: the only one; if there are none, that of Volcano's scheduler in
	// the followed cluster; if there are several, Volcano's default configuration.
	Policy string `yaml:"policy"`
	// File that holds the history, so that it outlives the process; it is made if there is none. One process at a time uses it. Empty: the
	// history begins when the server starts.
	File string `yaml:"file" path:"yes"`
	// Shortest time between two versions in which causes are looked for. At most a tenth of the time of one processor is spent on it.
	Interval time.Duration `yaml:"interval" default:"10s" min:"100ms" max:"1h"`
	// How long a job is known after it stopped waiting, and how far back the numbers of queues reach.
	Retain time.Duration `yaml:"retain" default:"7d" min:"1m" max:"365d"`
	// About the most memory of the history. Above it, jobs that stopped waiting first are forgotten, and samples of queues become longer.
	Bytes Bytes `yaml:"bytes" default:"64MiB" min:"1MiB" max:"2047MiB"`
}
