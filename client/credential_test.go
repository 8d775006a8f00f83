package client_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
)

func TestATokenOfAFileIsWhatTheFileHolds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	source := client.TokenFile(name)
	_, err := source(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("\n"), 0o600))
	_, err = source(t.Context())
	require.ErrorContains(t, err, "the file contains no token")
	require.NoError(t, os.WriteFile(name, []byte("one\ntwo\n"), 0o600))
	_, err = source(t.Context())
	require.EqualError(t, err, name+": a token is one line of letters, digits and signs without spaces, and character 4 is none of these")
	require.NoError(t, os.WriteFile(name, []byte("sesame\n"), 0o600))
	token, err := source(t.Context())
	require.NoError(t, err)
	require.Equal(t, "sesame", token)
	token, err = client.Token("open")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "open", token)
}
