package config

import (
	"reflect"
	"sync"

	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/wire"
)

// ServerOptions returns what the settings say about the server: its limits, times and connections.
func (c *Config) ServerOptions() service.Options {
	l, o, d, n := &c.Limit, &c.Overload, &c.Deadline, &c.Connection
	return service.Options{
		AnswerBytes: int(l.AnswerBytes), ExplainBytes: int(l.ExplainBytes), UndoBytes: int64(l.UndoBytes),
		Work:          int64(l.Work),
		SnapshotBytes: int64(l.SnapshotBytes), ReceivingBytes: int64(l.ReceivingBytes), UploadTime: l.UploadTime,
		CacheBytes: int64(l.CacheBytes), IdentityBytes: int64(l.IdentityBytes),
		SessionBytes: int64(l.SessionBytes), Sessions: l.Sessions, IdentitySessions: l.IdentitySessions, PendingBatches: l.PendingBatches,
		SessionTime: l.SessionTime, SessionIdle: l.SessionIdle,
		Limits: service.Limits{
			Limits: l.Snapshot(),
			Steps:  int64(l.Steps), QuestionBytes: int64(l.QuestionBytes), PolicyBytes: int64(l.PolicyBytes), Chunks: int64(l.Chunks),
		},
		Overload: admission.Options{
			Running: o.Running, Reserve: o.Reserve, Memory: int64(o.Memory), Waiting: o.Waiting, Wait: o.Wait,
			Calls: o.Calls, Receiving: int64(o.Receiving), Answers: int64(o.Answers),
		},
		RequestBytes: int(l.MessageBytes), HeaderBytes: uint32(l.HeaderBytes),
		CallTime: d.Call, MessageTime: d.Message, AnswerTime: d.Answer, HandshakeTime: d.Handshake,
		ConnectionStreams: uint32(n.Streams), ConnectionResets: n.Resets, HealthWatches: n.Watches,
		ConnectionAge: n.Age, ConnectionGrace: n.Grace, ConnectionIdle: n.Idle, ConnectionPing: n.Ping,
		DrainDelay: c.Drain.Delay, DrainTime: c.Drain.Time, NoReflection: !c.Reflection,
	}
}

// Snapshot returns the limits of one snapshot, however it comes.
func (l *Limit) Snapshot() wire.Limits {
	return wire.Limits{
		Dimensions: int64(l.Dimensions), Nodes: int64(l.Nodes), NodeSets: int64(l.NodeSets),
		Queues: int64(l.Queues), QueueDepth: int64(l.QueueDepth),
		Jobs: int64(l.Jobs), Groups: int64(l.Groups), Tasks: int64(l.Tasks), TextBytes: int64(l.TextBytes),
	}
}

// ofServer returns a configuration in which the settings of the server have the defaults that package service declares.
func ofServer() *Config {
	o := service.DefaultOptions()
	l, a := &o.Limits, &o.Overload
	return &Config{
		Limit: Limit{
			MessageBytes: Bytes(o.RequestBytes), AnswerBytes: Bytes(o.AnswerBytes), ExplainBytes: Bytes(o.ExplainBytes),
			HeaderBytes: Bytes(o.HeaderBytes), QuestionBytes: Bytes(l.QuestionBytes), PolicyBytes: Bytes(l.PolicyBytes),
			Steps: int(l.Steps), UndoBytes: Bytes(o.UndoBytes), Work: int(o.Work),
			Dimensions: int(l.Dimensions), Nodes: int(l.Nodes), NodeSets: int(l.NodeSets),
			Queues: int(l.Queues), QueueDepth: int(l.QueueDepth),
			Jobs: int(l.Jobs), Groups: int(l.Groups), Tasks: int(l.Tasks), TextBytes: Bytes(l.TextBytes),
			SnapshotBytes: Bytes(o.SnapshotBytes), Chunks: int(l.Chunks), ReceivingBytes: Bytes(o.ReceivingBytes), UploadTime: o.UploadTime,
			CacheBytes: Bytes(o.CacheBytes), IdentityBytes: Bytes(o.IdentityBytes),
			Sessions: o.Sessions, IdentitySessions: o.IdentitySessions, SessionBytes: Bytes(o.SessionBytes),
			PendingBatches: o.PendingBatches, SessionTime: o.SessionTime, SessionIdle: o.SessionIdle,
		},
		Overload: Overload{
			Running: a.Running, Reserve: a.Reserve, Memory: Bytes(a.Memory), Waiting: a.Waiting, Wait: a.Wait,
			Calls: a.Calls, Receiving: Bytes(a.Receiving), Answers: Bytes(a.Answers),
		},
		Deadline: Deadline{Call: o.CallTime, Message: o.MessageTime, Answer: o.AnswerTime, Handshake: o.HandshakeTime},
		Connection: Connection{
			Streams: int(o.ConnectionStreams), Resets: o.ConnectionResets, Watches: o.HealthWatches,
			Age: o.ConnectionAge, Grace: o.ConnectionGrace, Ping: o.ConnectionPing, Idle: o.ConnectionIdle,
		},
		Drain: Drain{Delay: o.DrainDelay, Time: o.DrainTime},
	}
}

// serverDefaults holds these defaults as text, by type and field.
var serverDefaults = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	c := ofServer()
	for _, section := range []any{c.Limit, c.Overload, c.Deadline, c.Connection, c.Drain} {
		v := reflect.ValueOf(section)
		for i, f := range fieldsOf(v.Type()) {
			texts[v.Type().Name()+"."+f.Name] = formatScalar(v.Field(i))
		}
	}
	return texts
})

// defaultOf returns the default of a field as text: its tag, or that of the server.
func defaultOf(parent reflect.Type, f reflect.StructField) (text string, given bool) {
	if text, given = f.Tag.Lookup("default"); given {
		return text, true
	}
	text, given = serverDefaults()[parent.Name()+"."+f.Name]
	return text, given
}
