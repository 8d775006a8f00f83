package kubescheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestFaultyArgumentsAreNamed(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"nothing":         {``, "queues: the path of a file of Queue manifests is required"},
		"unknown field":   {`{"queue": "x"}`, `unknown field "queue"`},
		"several":         {`{"queues": "x", "fallback": "maybe", "evict": "some"}`, `fallback: "maybe" is none of engine, closed, open; evict: "some" is none of`},
		"queue from":      {`{"queues": "x", "queueFrom": "owner"}`, `queueFrom: "owner" is neither namespace nor pod`},
		"negative":        {`{"queues": "x", "interval": "-1s"}`, "interval: -1s is negative"},
		"without server":  {`{"queues": "x", "tokenFile": "t"}`, "tokenFile: needs server"},
		"half a key pair": {`{"queues": "x", "server": "s", "certificate": "c"}`, "certificate, key: one needs the other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readArguments(&runtime.Unknown{Raw: []byte(test.args)})
			require.ErrorContains(t, err, test.want)
		})
	}
	a, err := readArguments(&runtime.Unknown{Raw: []byte(`{"queues": "x", "policy": "none"}`)})
	require.NoError(t, err)
	_, _, err = a.Connect()
	require.ErrorContains(t, err, `policy: "none" is neither a preset`)
}
