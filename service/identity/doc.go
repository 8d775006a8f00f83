// Package identity authenticates and authorizes callers: by the client certificate of a connection, or by a bearer token in the headers of
// a call. It needs only the headers, before a message is read.
//
//	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: "tls.crt", Key: "tls.key", ClientCA: "ca.crt"})
//	gate := identity.NewGate(authority)
//	err = gate.Admit(identities)
//	server, err := service.New(service.Options{Tap: []tap.ServerInHandle{gate.Tap}, Transport: gate.ServerOptions()})
package identity
