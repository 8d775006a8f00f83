package identity

import (
	"context"
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/wire/method"
)

// id draws names that nearly collide.
func id(t *rapid.T, label string) string {
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "a*", "*", "..", ".", ""})
	return "spiffe://" + rapid.SampledFrom([]string{"td", "td.x", "TD", ""}).Draw(t, label+" domain") + "/" +
		strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(t, label), "/")
}

func TestAPatternOfWorkloadsMeansWholeSegmentsOfItsTrustDomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, name := id(t, "pattern"), id(t, "name")
		uri, err := url.Parse(name)
		if CheckSPIFFE(pattern) != nil || err != nil {
			return
		}
		got, ok := workload(&x509.Certificate{URIs: []*url.URL{uri}})
		matched := ok && matchSPIFFE(pattern, got)
		// The plain twin: segment by segment.
		want := strings.Split(pattern, "/")
		have := strings.Split(name, "/")
		expected := len(have) >= len(want)
		for i, segment := range want {
			if segment == "*" {
				break
			}
			expected = expected && i < len(have) && have[i] == segment && (i < len(want)-1 || len(have) == len(want))
		}
		for i, segment := range have {
			bad := segment == ".." || segment == "." || segment == "" && i != 1 || strings.Contains(segment, "*")
			expected = expected && !bad && (i != 2 || segment == strings.ToLower(segment))
		}
		require.Equal(t, expected && len(have) > 3, matched, "%s against %s", name, pattern)
	})
}

func TestTheFirstIdentityThatFitsIsTaken(t *testing.T) {
	table, err := newTable([]Identity{
		{Name: "one", DNS: []string{"a.example.org"}, Methods: []string{"*"}},
		{Name: "all", DNS: []string{"*.example.org"}, Methods: []string{"*"}},
	})
	require.NoError(t, err)
	require.Equal(t, "one", table.shown(&x509.Certificate{DNSNames: []string{"b.example.org", "A.example.org"}}).Name)
	require.Equal(t, "all", table.shown(&x509.Certificate{DNSNames: []string{"b.example.org"}}).Name)
	require.Nil(t, table.shown(&x509.Certificate{DNSNames: []string{"*.example.org", "example.org", ".example.org", "x.b.example.org"}}))
	require.Nil(t, table.shown(&x509.Certificate{}))
}

func TestATokenIsFoundWhereverItStandsAndNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 40), 1, 20, rapid.ID[string]).Draw(t, "tokens")
		var r ring
		for i, token := range tokens {
			r.hashes, r.owners = append(r.hashes, HashOf(token)), append(r.owners, i/2)
		}
		for i, token := range tokens {
			require.Equal(t, i/2, r.owner(HashOf(token)))
			require.Equal(t, -1, r.owner(HashOf(token+"x"+strings.Repeat("y", 100))))
		}
		require.Equal(t, -1, r.owner(HashOf("")))
	})
}

func TestTheContextsOfAConnectionEndWithIt(t *testing.T) {
	var l lifetimes
	ctx := l.TagConn(context.Background(), &stats.ConnTagInfo{})
	l.HandleConn(ctx, &stats.ConnBegin{})
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	require.NoError(t, call.Err())
	l.HandleConn(ctx, &stats.ConnEnd{})
	require.ErrorIs(t, call.Err(), context.Canceled)
}

// simulate is the path of a call.
const simulate = "/apportion.v1.DecisionService/Simulate"

// FuzzHeaders tries any headers and names: nothing may crash, and only the right token is admitted.
func FuzzHeaders(f *testing.F) {
	f.Add("Bearer sesame", simulate, "spiffe://td/a", "a.b")
	f.Add("bearer  \x00", "", "spiffe://td/*", "*.a.b")
	f.Fuzz(func(t *testing.T, header, path, spiffe, dns string) {
		g := NewGate(nil)
		require.NoError(t, g.Admit([]Identity{{Name: "s", Tokens: []Hash{HashOf("sesame")}, Methods: []string{"Simulate"}}}))
		ctx, err := g.Tap(t.Context(), &tap.Info{FullMethodName: path, Header: metadata.MD{"authorization": {header}}})
		if err == nil {
			scheme, token, _ := strings.Cut(header, " ")
			require.True(t, strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) == "sesame", header)
			require.True(t, path == simulate || method.At(path) == nil, path)
			require.Equal(t, "s", Of(ctx).Name)
		}
		_ = g.Admit([]Identity{{Name: header, SPIFFE: []string{spiffe}, DNS: []string{dns}, Clusters: []string{dns}}})
		_, _ = ParseHash(header)
		if CheckDNS(dns) == nil && !strings.HasPrefix(dns, "*") {
			require.True(t, matchDNS(dns, dns))
		}
	})
}

// BenchmarkGate measures the cost of the gate for a call.
func BenchmarkGate(b *testing.B) {
	token := NewToken()
	g := NewGate(nil)
	identities := make([]Identity, 100)
	for i := range identities {
		identities[i] = Identity{Name: NewToken(), Tokens: []Hash{HashOf(NewToken())}, Methods: []string{"*"}}
	}
	identities[50].Tokens[0] = HashOf(token)
	require.NoError(b, g.Admit(identities))
	call := &tap.Info{FullMethodName: simulate, Header: metadata.MD{"authorization": {"Bearer " + token}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Tap(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
