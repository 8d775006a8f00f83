package decode

import "reflect"

// Reread returns what a slot holds that read one message and then another.
func Reread[M any](before, data []byte) (*M, bool) {
	s, of := slot[M]{}, tableOf[M]()
	return &s.m, s.fill(of, before) && s.fill(of, data)
}

// NewTable builds the table of any type of struct, and returns why it cannot.
func NewTable(message reflect.Type) (fault string) {
	_, fault = newTable(message)
	return fault
}
