package service

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/apportion/apportion/engine/model"
)

// Redact drops from a message what a caller may not see who owns the queues given.
func Redact(m *model.Model, own func(string) bool, message proto.Message) {
	NewAudience(m, own).redact(message)
}

// MessageOf returns the type of a message.
func MessageOf(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return protoregistry.GlobalTypes.FindMessageByName(name)
}
