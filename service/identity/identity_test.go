package identity_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/service/identity"
)

func TestPatternsThatCouldMeanMoreThanTheirAuthorMeantAreRefused(t *testing.T) {
	for id, good := range map[string]bool{
		"spiffe://example.org/scheduler":           true,
		"spiffe://example.org/ns/kai/sa/scheduler": true,
		"spiffe://example.org/ns/*":                true,
		"spiffe://example.org/*":                   true,
		"":                                         false,
		"*":                                        false,
		"scheduler":                                false,
		"https://example.org/scheduler":            false,
		"spiffe://example.org":                     false,
		"spiffe://example.org/":                    false,
		"spiffe:///scheduler":                      false,
		"spiffe://*":                               false,
		"spiffe://*/scheduler":                     false,
		"spiffe://*.example.org/*":                 false,
		"spiffe://example.org/sched*":              false,
		"spiffe://example.org/*/scheduler":         false,
		"spiffe://example.org/**":                  false,
		"spiffe://example.org/a/../b":              false,
		"spiffe://example.org/a/..":                false,
		"spiffe://example.org/./b":                 false,
		"spiffe://example.org//b":                  false,
		"spiffe://example.org/a%2fb":               false,
		"spiffe://example.org/a?b":                 false,
		"spiffe://example.org/a#b":                 false,
		"spiffe://example.org:443/a":               false,
		"spiffe://user@example.org/a":              false,
		"spiffe://Example.org/a":                   false,
		"spiffe://example.org/\x00":                false,
		"spiffe://e/" + strings.Repeat("a", 2048):  false,
	} {
		require.Equal(t, good, identity.CheckSPIFFE(id) == nil, id)
	}
	for name, good := range map[string]bool{
		"scheduler.example.org": true, "localhost": true, "*.example.org": true, "A.example.org": true, "a_b.example.org": true,
		"": false, "*": false, "*.": false, "*.org": false, "a.*.org": false, "*a.example.org": false, "a..b": false, ".a": false, "a.": false,
		"-a.example.org": false, "a b.example.org": false, "ex\u00e4mple.org": false, strings.Repeat("a", 64) + ".org": false,
		strings.Repeat("a.", 127) + "org": false,
	} {
		require.Equal(t, good, identity.CheckDNS(name) == nil, name)
	}
	for name, good := range map[string]bool{"": true, "*": true, "prod": true, "prod-*": true, "*-prod": false, "a*b": false, "**": false} {
		require.Equal(t, good, identity.CheckCluster(name) == nil, name)
	}
	for name, good := range map[string]bool{"*": true, "Simulate": true, "RunSession": true, "": false, "simulate": false, "Sim*": false} {
		require.Equal(t, good, identity.CheckMethod(name) == nil, name)
	}
	for gone, successor := range map[string]string{"ScoreNodes": "Simulate", "GetSnapshot": "DownloadSnapshot"} {
		require.ErrorContains(t, identity.CheckMethod(gone), successor+" answers what it did")
	}
}

func TestAHashIsReadAsItIsWrittenAndItsFaultTellsNothing(t *testing.T) {
	hash := identity.HashOf("open sesame")
	again, err := identity.ParseHash(hash.String())
	require.NoError(t, err)
	require.Equal(t, hash, again)
	for _, text := range []string{
		"", "sha256:", "open sesame", strings.TrimPrefix(hash.String(), "sha256:"), hash.String() + "00", hash.String()[:70] + "x", "md5:" + hash.String()[7:],
	} {
		_, err := identity.ParseHash(text)
		require.EqualError(t, err, "expected the hash of a token: sha256: and 64 hexadecimal digits")
	}
}

func TestTokensAreLongAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := identity.NewToken()
		require.Regexp(t, `^apportion_[A-Za-z0-9_-]{43}$`, token)
		require.False(t, seen[token])
		seen[token] = true
	}
}
