package web_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/web"
)

// TestTheDocumentedCallIsAnsweredAsDocumented makes the call of docs/clients.md.
func TestTheDocumentedCallIsAnsweredAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 3)
	s := start(t, service.Options{}, web.Options{})
	status, _, answer := s.post(t, "/apportion.v1.ApportionService/CheckEnqueue", string(blocks[0][1]))
	require.Equal(t, http.StatusOK, status, answer)
	basis, _ := answer["basis"].(map[string]any)
	require.Equal(t, engine.Version, basis["engineVersion"])
	basis["engineVersion"] = "0.1.0"
	got, err := json.MarshalIndent(answer, "", "  ")
	require.NoError(t, err)
	require.JSONEq(t, string(blocks[1][1]), string(got), string(got))

	_, _, answer = s.post(t, "/apportion.v1.ApportionService/CheckEnqueue", `{"input":{"snapshot":{},"policyName":"none"}}`)
	var want map[string]any
	require.NoError(t, json.Unmarshal(blocks[2][1], &want))
	delete(answer, "details")
	require.Equal(t, want, answer)
}
