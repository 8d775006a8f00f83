package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire/method"
)

// Caller is the authenticated caller of a call.
type Caller struct {
	// Name of the identity; "" if there are no identities.
	Name string

	// methods are paths; nil: all.
	methods map[string]bool
	// clusters and snapshots are patterns; nil: all.
	clusters, snapshots []string
	// queues are patterns; nil: all.
	queues []string
}

type callerKey struct{}

// anyone is the caller of each call if no identities are configured.
var anyone = &Caller{}

// Of returns the caller of a context, or nil if no gate has admitted the call.
func Of(ctx context.Context) *Caller {
	caller, _ := ctx.Value(callerKey{}).(*Caller)
	return caller
}

// MayCall returns a PERMISSION_DENIED if the caller may not call a method, given by its path. Methods that are not of the contract, such as
// reflection, are open to every identity.
func (c *Caller) MayCall(path string) error {
	if c.methods == nil || c.methods[path] || method.At(path) == nil {
		return nil
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	return c.denied("may not call "+printable(name), "method", name)
}

// MayName returns a PERMISSION_DENIED if the caller's snapshots may not name a cluster.
func (c *Caller) MayName(cluster string) error {
	if matchAny(c.clusters, cluster) {
		return nil
	}
	if cluster == "" {
		return c.denied("must name a cluster in its snapshots", "cluster", "")
	}
	return c.denied("may not name cluster "+strconv.Quote(printable(cluster)), "cluster", cluster)
}

// MayAsk returns a PERMISSION_DENIED if the caller may not use a snapshot that the server maintains.
func (c *Caller) MayAsk(snapshot string) error {
	if matchAny(c.snapshots, snapshot) {
		return nil
	}
	return c.denied("may not ask about snapshot "+strconv.Quote(printable(snapshot)), "snapshot", snapshot)
}

// Owns returns a function that reports whether the caller owns a queue, or nil if it owns all.
func (c *Caller) Owns() func(queue string) bool {
	if c.queues == nil {
		return nil
	}
	return func(queue string) bool { return matchAny(c.queues, queue) }
}

// matchAny reports whether one of the patterns stands for a name; nil stands for all.
func matchAny(patterns []string, name string) bool {
	return patterns == nil || slices.ContainsFunc(patterns, func(pattern string) bool { return matchCluster(pattern, name) })
}

func (c *Caller) denied(text, key, value string) error {
	return &decode.Fault{
		Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
		Text:     "identity " + strconv.Quote(c.Name) + " " + text,
		Metadata: map[string]string{"identity": c.Name, key: printable(value)},
	}
}

func printable(text string) string {
	const longest = 128
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// table finds callers. It does not change.
type table struct {
	identities []Identity
	callers    []*Caller
	tokens     ring
}

func newTable(identities []Identity) (*table, error) {
	t := &table{}
	var faults []error
	names, owners := map[string]bool{}, map[Hash]string{}
	for i, id := range identities {
		if err := id.check(); err != nil {
			faults = append(faults, err)
		}
		if names[id.Name] {
			faults = append(faults, fmt.Errorf("two identities have the name %q", id.Name))
		}
		names[id.Name] = true
		for _, hash := range id.Tokens {
			if owner, taken := owners[hash]; taken {
				faults = append(faults, fmt.Errorf("identities %q and %q have the same token", owner, id.Name))
			}
			owners[hash] = id.Name
			t.tokens.hashes = append(t.tokens.hashes, hash)
			t.tokens.owners = append(t.tokens.owners, i)
		}
		t.identities = append(t.identities, id)
		t.callers = append(t.callers, &Caller{
			Name: id.Name, methods: methodSet(id.Methods), clusters: clusterSet(id.Clusters), snapshots: clusterSet(id.Snapshots),
			queues: clusterSet(id.Queues),
		})
	}
	return t, errors.Join(faults...)
}

func methodSet(names []string) map[string]bool {
	if slices.Contains(names, everything) {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[method.PathOf(method.Named(name))] = true
	}
	return set
}

func clusterSet(patterns []string) []string {
	if slices.Contains(patterns, everything) {
		return nil
	}
	return append([]string{}, patterns...)
}

// workload returns the SPIFFE ID of a certificate. A certificate with several URIs is not a SPIFFE document.
func workload(leaf *x509.Certificate) (string, bool) {
	if len(leaf.URIs) != 1 {
		return "", false
	}
	id := leaf.URIs[0].String()
	return id, !strings.Contains(id, everything) && CheckSPIFFE(id) == nil
}

// shown returns the first identity that a certificate's names belong to, or nil.
func (t *table) shown(leaf *x509.Certificate) *Caller {
	for i := range t.identities {
		id := &t.identities[i]
		if uri, ok := workload(leaf); ok {
			if slices.ContainsFunc(id.SPIFFE, func(pattern string) bool { return matchSPIFFE(pattern, uri) }) {
				return t.callers[i]
			}
		}
		for _, name := range leaf.DNSNames {
			if slices.ContainsFunc(id.DNS, func(pattern string) bool { return matchDNS(pattern, name) }) {
				return t.callers[i]
			}
		}
	}
	return nil
}
