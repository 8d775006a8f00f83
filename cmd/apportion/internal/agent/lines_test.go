package agent

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyMessagesAreReadAndOtherLinesAreAnswered(t *testing.T) {
	const ping, pong = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, tc := range map[string]struct {
		line, read string
		codes      []string
	}{
		"a request":                        {ping, ping + "\n", nil},
		"a response with the Windows end":  {pong + "\r", pong + "\n", nil},
		"an empty line":                    {" \r", "", nil},
		"no JSON":                          {"hello", "", []string{"-32700"}},
		"two messages":                     {ping + ping, "", []string{"-32700"}},
		"null":                             {"null", "", []string{"-32600"}},
		"another version":                  {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "", []string{"-32600"}},
		"a method that is no text":         {`{"jsonrpc":"2.0","id":1,"method":5}`, "", []string{"-32600"}},
		"a long line":                      {strings.Repeat("x", 300), "", []string{"-32600"}},
		"an empty batch":                   {"[ ]", "", []string{"-32600"}},
		"a batch with what is no message":  {"[1," + ping + ",[]," + pong + "]", ping + "\n" + pong + "\n", []string{"-32600", "-32600"}},
		"an array that nests without need": {strings.Repeat("[", 100) + strings.Repeat("]", 100), "", []string{"-32600"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			in := strings.NewReader(tc.line + "\n\n" + ping)
			read, err := io.ReadAll(&messages{in: bufio.NewReaderSize(in, 16), out: &out, longest: 200})
			require.NoError(t, err)
			require.Equal(t, tc.read+ping+"\n", string(read), "what follows is read")
			require.Equal(t, len(tc.codes), strings.Count(out.String(), `"id":null`), out.String())
			for _, code := range tc.codes {
				require.Contains(t, out.String(), code)
			}
		})
	}
}
