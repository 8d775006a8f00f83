package config

import (
	"maps"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/tree"
	"github.com/apportion/apportion/service/identity"
)

const (
	presetPrefix = "preset:"
	unixPrefix   = "unix:"
)

// checker collects the errors of values, single or in combination.
type checker struct {
	*Effective

	faults tree.Faults
}

func (c *checker) fail(path, text string) {
	c.faults.Add(&tree.Fault{Source: c.Origin(path), Path: path, Text: text})
}

func (e *Effective) check() tree.Faults {
	c := &checker{Effective: e}
	c.ranges(reflect.ValueOf(&e.Config).Elem(), "")
	c.addresses()
	c.encryption()
	c.identities()
	c.policies()
	c.extender()
	c.observers()
	c.ledger()
	c.history()
	c.memory()
	return c.faults
}

// ranges checks the bounds in the tags. No number is below zero.
func (c *checker) ranges(v reflect.Value, prefix string) {
	for f, field := range v.Fields() {
		path := tree.Join(prefix, keyOf(f))
		if f.Type.Kind() == reflect.Struct {
			c.ranges(field, path)
			continue
		}
		if allowed, ok := f.Tag.Lookup("oneof"); ok && !slices.Contains(strings.Split(allowed, ","), field.String()) {
			c.fail(path, "one of "+strings.ReplaceAll(allowed, ",", ", ")+" is expected")
		}
		if !field.CanInt() {
			continue
		}
		form, least, most := setting.FormOf(f.Type), reflect.New(f.Type).Elem(), reflect.New(f.Type).Elem()
		most.SetInt(math.MaxInt64)
		for tag, bound := range map[string]reflect.Value{"min": least, "max": most} {
			if text, ok := f.Tag.Lookup(tag); ok && form.Parse(text, bound) != nil {
				c.fail(path, "its bound "+text+" cannot be read")
			}
		}
		if field.Int() < least.Int() {
			c.fail(path, form.String(field)+" is below its minimum, "+form.String(least))
		}
		if field.Int() > most.Int() {
			c.fail(path, form.String(field)+" is above its maximum, "+form.String(most))
		}
	}
}

func (c *checker) addresses() {
	if len(c.Listen) == 0 {
		c.fail("listen", "the server must listen somewhere")
	}
	seen := map[string]bool{}
	check := func(address, path string) {
		if seen[address] && !strings.HasSuffix(address, ":0") {
			c.fail(path, address+" is listened on twice")
		}
		seen[address] = true
		if text := faultOfAddress(address); text != "" {
			c.fail(path, text)
		}
	}
	for i, address := range c.Listen {
		check(address, element("listen", i))
	}
	if c.Admin.Listen != "" {
		check(c.Admin.Listen, "admin.listen")
	}
	if c.HTTP.Listen != "" {
		check(c.HTTP.Listen, "http.listen")
	}
	if c.Extender.Listen != "" {
		check(c.Extender.Listen, "extender.listen")
	}
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func faultOfAddress(address string) string {
	if name, ok := strings.CutPrefix(address, unixPrefix); ok {
		// What a socket's address can hold on every system.
		const longest = 100
		if name == "" || len(name) > longest {
			return "unix: and the name of a socket is expected, at most 100 bytes"
		}
		return ""
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "host:port or unix:PATH is expected, not " + strconv.Quote(tree.Printable(address))
	}
	return ""
}

// isLocal reports whether an address can be reached from the machine itself alone.
func isLocal(address string) bool {
	if strings.HasPrefix(address, unixPrefix) {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (c *checker) encryption() {
	t := c.TLS
	if t.Certificate == "" && t.Key != "" {
		c.fail("tls.key", "requires tls.certificate")
	}
	if t.Certificate != "" && t.Key == "" {
		c.fail("tls.certificate", "requires tls.key")
	}
	if t.Certificate == "" && t.ClientCA != "" {
		c.fail("tls.client_ca", "requires tls.certificate and tls.key")
	}
	if t.ClientCA == "" && t.ClientCertificate == "optional" {
		c.fail("tls.client_certificate", "requires tls.client_ca")
	}
	if t.Certificate != "" && t.Plaintext {
		c.fail("tls.plaintext", "contradicts tls.certificate")
	}
	if t.Certificate != "" || t.Plaintext {
		return
	}
	local := func(address, path string) {
		if address != "" && !isLocal(address) {
			c.fail(path, address+" can be reached from other machines: set tls.certificate and tls.key, or "+
				"tls.plaintext where something else encrypts")
		}
	}
	for i, address := range c.Listen {
		local(address, element("listen", i))
	}
	local(c.HTTP.Listen, "http.listen")
}

func (c *checker) identities() {
	shown := false
	names, tokens := map[string]bool{}, map[string]string{}
	for i, id := range c.Identities {
		path := element("identities", i)
		if id.Name == "" {
			c.fail(path, "the identity has no name")
		} else if names[id.Name] {
			c.fail(path+".name", strconv.Quote(tree.Printable(id.Name))+" names two identities")
		}
		names[id.Name] = true
		if len(id.SPIFFE)+len(id.DNS)+len(id.Tokens) == 0 {
			c.fail(path, "the identity needs spiffe, dns or tokens")
		}
		if len(id.SPIFFE)+len(id.DNS) > 0 {
			shown = true
			if c.TLS.ClientCA == "" {
				c.fail(path, "spiffe and dns require tls.client_ca")
			}
		}
		c.each(path+".spiffe", id.SPIFFE, identity.CheckSPIFFE)
		c.each(path+".dns", id.DNS, identity.CheckDNS)
		c.each(path+".methods", id.Methods, identity.CheckMethod)
		c.each(path+".clusters", id.Clusters, identity.CheckCluster)
		c.each(path+".snapshots", id.Snapshots, identity.CheckCluster)
		c.each(path+".queues", id.Queues, identity.CheckCluster)
		for k, token := range id.Tokens {
			at := element(path+".tokens", k)
			hash, err := identity.ParseHash(token)
			switch other, twice := tokens[hash.String()]; {
			case err != nil:
				c.fail(at, err.Error())
			case twice:
				c.fail(at, "the same token is at "+other)
			default:
				tokens[hash.String()] = at
			}
		}
	}
	if c.TLS.ClientCA != "" && !shown {
		c.fail("tls.client_ca", "no identity has spiffe or dns, so no client certificate would be accepted")
	}
}

func (c *checker) each(path string, texts []string, check func(string) error) {
	for i, text := range texts {
		if err := check(text); err != nil {
			c.fail(element(path, i), err.Error())
		}
	}
}

// PolicyKind is the form of a policy's source.
type PolicyKind int

// The kinds of sources.
const (
	// UnknownPolicy is none.
	UnknownPolicy PolicyKind = iota
	// PresetPolicy is one that the program has.
	PresetPolicy
	// FilePolicy is one in a file, which says what it is.
	FilePolicy
)

// KindOf returns how the source of a policy is read, and its file or the preset's name.
func KindOf(source string) (PolicyKind, string) {
	if name, ok := strings.CutPrefix(source, presetPrefix); ok {
		return PresetPolicy, name
	}
	switch filepath.Ext(source) {
	case ".conf", ".yaml", ".yml", ".json":
		return FilePolicy, source
	}
	return UnknownPolicy, source
}

func (c *checker) policies() {
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		path := tree.Join("policies", tree.Printable(name))
		if name == "" {
			c.fail(path, "a policy needs a name")
		}
		if kind, _ := KindOf(c.Policies[name]); kind == UnknownPolicy {
			c.fail(path, "a file ending in .conf, .yaml, .yml or .json is expected, or preset:NAME")
		}
	}
}

func (c *checker) extender() {
	e := c.Extender
	if e.Listen == "" {
		for _, given := range []struct {
			path string
			set  bool
		}{
			{"extender.schedulers", len(e.Schedulers) > 0},
			{"extender.shadow", len(e.Shadow) > 0},
			{"extender.tls", e.TLS},
			{"extender.users", e.Users != ""},
		} {
			if given.set {
				c.fail(given.path, "requires extender.listen")
			}
		}
		return
	}
	if e.TLS && c.TLS.Certificate == "" {
		c.fail("extender.tls", "requires tls.certificate")
	}
	if !isLocal(e.Listen) && !e.Plaintext && !e.TLS {
		c.fail("extender.listen",
			e.Listen+" can be reached from other machines: set extender.tls, or extender.plaintext where something else encrypts")
	}
	if len(e.Schedulers) == 0 {
		c.fail("extender.schedulers", "at least one scheduler is required")
	}
	for _, path := range slices.Sorted(maps.Keys(e.Schedulers)) {
		if !strings.HasPrefix(path, "/") {
			c.fail("extender.schedulers", strconv.Quote(tree.Printable(path))+" does not begin with /")
		}
		if _, ok := c.Policies[e.Schedulers[path]]; !ok {
			c.fail("extender.schedulers", "no policy "+strconv.Quote(tree.Printable(e.Schedulers[path]))+" is configured")
		}
	}
	for i, path := range e.Shadow {
		if _, ok := e.Schedulers[path]; !ok {
			c.fail(element("extender.shadow", i), "extender.schedulers has no path "+strconv.Quote(tree.Printable(path)))
		}
	}
}

// observers checks the settings of the decision log and of the shadow policy.
func (c *checker) observers() {
	l := c.DecisionLog
	const file = "file"
	switch {
	case l.Sink == file && l.File == "":
		c.fail("decision_log.file", "a file is required for decision_log.sink: file")
	case l.Sink != file && l.File != "":
		c.fail("decision_log.file", "requires decision_log.sink: file")
	}
	if l.Store != "" && len(l.Mask) > 0 {
		c.fail("decision_log.mask", "cannot be used with decision_log.store, which stores snapshots unmasked")
	}
	c.policy("shadow.policy", c.Shadow.Policy)
	c.policy("shadow.of", c.Shadow.Of)
	if c.Shadow.Policy == "" && c.Shadow.Of != "" {
		c.fail("shadow.of", "requires shadow.policy")
	}
}

// history checks what the history of the followed cluster is kept by.
func (c *checker) history() {
	if c.History.File != "" && !c.Follow.Enabled {
		c.fail("history.file", "requires follow.enabled: the history is about the cluster that the server follows")
	}
	if c.History.File != "" && !c.History.Enabled {
		c.fail("history.file", "requires history.enabled")
	}
	if c.History.File != "" && c.History.File == c.Ledger.File {
		c.fail("history.file", "is the file of the ledger: each needs a file of its own")
	}
	c.policy("history.policy", c.History.Policy)
}

// policy checks the name of a policy, which may be empty.
func (c *checker) policy(path, name string) {
	if _, ok := c.Policies[name]; name != "" && !ok {
		c.fail(path, "no policy "+strconv.Quote(tree.Printable(name))+" is configured")
	}
}

// longestHalfLife is the longest half-life of usage, in epochs, window the number of half-lives for which usage counts, and mostEpochs the
// number of epochs that a ledger keeps at most.
const longestHalfLife, window, mostEpochs = 512, 8, 1 << 20

func (c *checker) ledger() {
	l := &c.Ledger
	if l.File != "" && !c.Follow.Enabled {
		c.fail("ledger.file", "requires follow.enabled: the ledger is about the cluster that the server follows")
	}
	if l.File != "" && c.Follow.System == "kueue" {
		c.fail("ledger.file", "cannot be used with follow.system: kueue, whose workloads have no pods in the snapshot")
	}
	if l.Budgets != "" && l.File == "" {
		c.fail("ledger.budgets", "requires ledger.file")
	}
	if l.Epoch < time.Second {
		return
	}
	if l.Epoch%time.Second != 0 {
		c.fail("ledger.epoch", "whole seconds are expected")
		return
	}
	switch n := l.HalfLife / l.Epoch; {
	case l.HalfLife%l.Epoch != 0 || n < 1 || n > longestHalfLife:
		c.fail("ledger.half_life", "from 1 to 512 times ledger.epoch is expected, which is "+duration.Format(l.Epoch))
	case l.Retain < window*l.HalfLife:
		c.fail("ledger.retain", "at least "+duration.Format(window*l.HalfLife)+" is expected, 8 times ledger.half_life")
	case l.Retain/l.Epoch > mostEpochs:
		c.fail("ledger.retain", "at most "+duration.Format(mostEpochs*l.Epoch)+" is expected, 1048576 times ledger.epoch")
	}
}

// memory checks that the most that one call may use fits into what there is for all calls.
func (c *checker) memory() {
	if len(c.faults) > 0 {
		return
	}
	for _, pair := range []struct {
		path, what, of string
		all, one       setting.Bytes
	}{
		{"overload.receiving", "message could never be received", "limit.message_bytes", c.Overload.Receiving, c.Limit.MessageBytes},
		{"overload.answers", "answer could never be sent", "limit.answer_bytes", c.Overload.Answers, c.Limit.AnswerBytes},
		{
			"limit.receiving_bytes", "snapshot could never be received", "limit.snapshot_bytes",
			c.Limit.ReceivingBytes, c.Limit.SnapshotBytes,
		},
	} {
		if least := 2 * pair.one; pair.all < least {
			c.fail(pair.path, "the largest "+pair.what+": at least "+least.String()+" is expected, twice "+pair.of)
		}
	}
}
