// Package hostname refuses requests that reach a server by a name that is not its own.
//
// A web page can make the browser of its reader send requests to any server that the browser reaches, and read the answers, if the name of
// the page's site resolves to that server's address for a moment (DNS rebinding). Such requests name the site as their host. Addresses
// cannot be rebound, nor can names that no public DNS has.
package hostname

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// Only passes on the requests whose host is an IP address, one of the names, or a name that public DNS does not have: localhost, one
// without a dot, and those of services in a Kubernetes cluster. Others get 421 Misdirected Request.
func Only(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !permitted(names, r.Host) {
			http.Error(w, "this server has no such name; connection.hosts lists the names of a server", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func permitted(names []string, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".svc") ||
		strings.HasSuffix(host, ".cluster.local") ||
		slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}
