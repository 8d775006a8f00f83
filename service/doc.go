// Package service is the gRPC edge: it turns requests into sessions of package wire, and errors into statuses, keeps limits, and starts and
// stops the server. It contains no decisions.
//
//	server, err := service.New(service.Options{Policies: policies})
//	err = server.Serve(ctx, listener)
//
// A unary call passes these files: admit (headers), handler, message (bytes), decode (request), intercept, unary, open (session on the
// snapshot), response (encoding). Package admission decides when its work may begin and how much memory it may hold.
package service
