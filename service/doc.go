// Package service is the gRPC edge: it turns requests into sessions of package wire, and errors into statuses, keeps limits, and starts
// and stops the server. It decides nothing.
//
//	server, err := service.New(service.Options{Policies: policies})
//	err = server.Serve(ctx, listener)
package service
