package daemon

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/test/certtest"
)

// TestVolcanoIsAnsweredEncrypted uses a client as Volcano's: a password, no certificate, and trust in the authority of the server's.
func TestVolcanoIsAnsweredEncrypted(t *testing.T) {
	authority := certtest.New(t)
	server := authority.Issue(t, certtest.Named("apportion.example.org"))
	p := at(t, `
tls: {certificate: tls.crt, key: tls.key, client_ca: ca.crt}
policies: {house: preset:proportion}
identities: [{name: scheduler, dns: [scheduler.example.org]}]
extender: {listen: "localhost:0", tls: true, schedulers: {/volcano: house}, users: users}
`)
	p.write("tls.crt", string(server.Certificate))
	p.write("tls.key", string(server.Key))
	p.write("ca.crt", string(authority.PEM()))
	// The password is "word".
	p.write("users", "volcano:98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6\n")
	p.start()
	address := addressOf(p.extender.listener)
	post := func(url string) (int, error) {
		transport := &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: "apportion.example.org"},
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/volcano/onSessionClose", strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, err
		}
		require.Equal(t, 1, response.ProtoMajor)
		return response.StatusCode, response.Body.Close()
	}
	status, err := post("https://volcano:word@" + address)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	status, err = post("https://volcano:guess@" + address)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)
	status, err = post("http://volcano:word@" + address)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, status, "what is not encrypted is refused")
}
