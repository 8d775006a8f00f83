package identity

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/apportion/apportion/internal/wire/method"
)

// Identity is a caller, or a group of callers that counts as one.
type Identity struct {
	// Name in logs and quotas.
	Name string
	// SPIFFE and DNS are its names in certificates, Tokens the hashes of its bearer tokens.
	SPIFFE, DNS []string
	Tokens      []Hash
	// Methods that it may call, Clusters that its snapshots may name, and Snapshots of the server that it may use.
	Methods, Clusters, Snapshots []string
	// Queues that it owns: in snapshots that the server maintains, it sees these, those below them, and the sums of all other queues.
	Queues []string
}

// everything stands for every method, cluster or workload.
const everything = "*"

var (
	errMethod  = errors.New("no such method: one of " + strings.Join(Methods(), ", ") + " or * is expected")
	errSPIFFE  = errors.New("expected a SPIFFE ID, such as spiffe://example.org/scheduler or spiffe://example.org/*")
	errDNS     = errors.New("expected a DNS name, such as scheduler.example.org or *.example.org")
	errCluster = errors.New("expected a name, with at most one * at its end")
)

// Methods lists the names that Identity.Methods may hold, besides *.
func Methods() []string {
	var names []string
	for _, call := range method.Calls() {
		names = append(names, string(call.Name()))
	}
	return names
}

// CheckMethod returns an error if a value of Identity.Methods is invalid.
func CheckMethod(name string) error {
	if name == everything || method.Named(name) != nil {
		return nil
	}
	if successor := method.Successor(name); successor != "" {
		return errors.New("there is no such method any more: " + successor + " answers what it did")
	}
	return errMethod
}

// CheckSPIFFE returns an error if a value of Identity.SPIFFE is invalid. Valid is a SPIFFE ID of a workload; a last segment * matches any
// number of segments.
func CheckSPIFFE(id string) error {
	plain := strings.TrimSuffix(id, everything)
	u, err := url.Parse(strings.TrimSuffix(plain, "/"))
	const longest = 2048
	switch {
	case err != nil || len(id) > longest || strings.Contains(plain, everything):
		return errSPIFFE
	case u.Scheme != "spiffe" || u.Host == "" || u.Host != strings.ToLower(u.Host) || u.Port() != "" || u.User != nil:
		return errSPIFFE
	case strings.ContainsAny(id, "?#%") || strings.Contains(u.Path, "//") || strings.Contains(u.Path+"/", "/./") ||
		strings.Contains(u.Path+"/", "/../"):
		return errSPIFFE
	case plain != id && !strings.HasSuffix(plain, "/"):
		// A * that is not a whole segment: scheduler* is not meant to match scheduler-of-the-attacker.
		return errSPIFFE
	case plain == id && (u.Path == "" || strings.HasSuffix(id, "/")):
		return errSPIFFE
	}
	return nil
}

// matchSPIFFE reports whether a checked pattern stands for an ID.
func matchSPIFFE(pattern, id string) bool {
	if prefix, ok := strings.CutSuffix(pattern, everything); ok {
		return len(id) > len(prefix) && strings.HasPrefix(id, prefix)
	}
	return pattern == id
}

// CheckDNS returns an error if a value of Identity.DNS is invalid. Valid is a DNS name; a first label * matches any one label.
func CheckDNS(name string) error {
	const longest = 253
	rest := strings.TrimPrefix(name, "*.")
	if rest == "" || len(name) > longest || rest != name && !strings.Contains(rest, ".") {
		return errDNS
	}
	for label := range strings.SplitSeq(rest, ".") {
		if !isLabel(label) {
			return errDNS
		}
	}
	return nil
}

func isLabel(label string) bool {
	const longest = 63
	if label == "" || len(label) > longest || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// matchDNS reports whether a checked pattern stands for a name.
func matchDNS(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	if suffix, ok := strings.CutPrefix(pattern, everything); ok {
		label, ok := strings.CutSuffix(name, suffix)
		return ok && isLabel(label)
	}
	return pattern == name
}

// CheckCluster returns an error if a value of Identity.Clusters, Identity.Snapshots or Identity.Queues is invalid. Valid is a name; a * at
// its end matches any text.
func CheckCluster(name string) error {
	if strings.Contains(strings.TrimSuffix(name, everything), everything) {
		return errCluster
	}
	return nil
}

func matchCluster(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, everything); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// check returns everything that is wrong with an identity.
func (id *Identity) check() error {
	var faults []error
	if id.Name == "" {
		faults = append(faults, errors.New("an identity needs a name"))
	}
	for _, part := range []struct {
		texts []string
		check func(string) error
	}{
		{id.SPIFFE, CheckSPIFFE},
		{id.DNS, CheckDNS},
		{id.Methods, CheckMethod},
		{id.Clusters, CheckCluster},
		{id.Snapshots, CheckCluster},
		{id.Queues, CheckCluster},
	} {
		for _, text := range part.texts {
			if err := part.check(text); err != nil {
				faults = append(faults, fmt.Errorf("identity %q: %q: %w", id.Name, text, err))
			}
		}
	}
	return errors.Join(faults...)
}
