package service

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/apportion/apportion/engine/model"
)

// Spoil has all memory that is given back overwritten until the function that is returned is called. No server may run while either is
// called.
func Spoil(with func([]byte)) (end func()) {
	spoil = with
	return func() { spoil = nil }
}

// Redact drops from a message what a caller may not see who owns the queues given.
func Redact(m *model.Model, own func(string) bool, message proto.Message) {
	NewAudience(m, own).redact(message)
}

// MessageOf returns the type of a message.
func MessageOf(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return protoregistry.GlobalTypes.FindMessageByName(name)
}
