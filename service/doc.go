// Package service is the gRPC edge: it turns requests into sessions of package wire, and errors into statuses, keeps limits, and starts
// and stops the server. It decides nothing.
//
//	server, err := service.New(service.Options{Policies: policies})
//	err = server.Serve(ctx, listener)
//
// A unary call takes this road, a file each: admit (headers), handler, message (bytes), decode (request), intercept, unary, open (session
// on the snapshot) and, back again, response (encoding). Package admission says when its work may begin and how much memory it may hold.
package service
