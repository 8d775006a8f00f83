package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// mostText and mostAnswer bound the bytes of a result for people and for programs.
	mostText, mostAnswer = 24 << 10, 64 << 10
	// mostKept and mostBytes bound the whole answers that are kept.
	mostKept, mostBytes = 16, 64 << 20
	scheme              = "apportion://answer/"
	jsonType            = "application/json"
)

// answers keeps the last whole answers.
type answers struct {
	mutex sync.Mutex
	last  int
	bytes int
	kept  map[int][]byte
}

// keep keeps the answer of a run, or its text if it has none, and returns the link to it.
func (a *answers) keep(tool string, r Run) *mcp.ResourceLink {
	body := []byte(r.Answer)
	if len(body) == 0 {
		body, _ = json.Marshal(map[string]string{"text": r.Text}) //nolint:errchkjson // A text can be encoded.
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.kept == nil {
		a.kept = map[int][]byte{}
	}
	a.last++
	a.kept[a.last] = body
	a.bytes += len(body)
	for oldest := a.last - len(a.kept) + 1; len(a.kept) > 1 && (len(a.kept) > mostKept || a.bytes > mostBytes); oldest++ {
		a.bytes -= len(a.kept[oldest])
		delete(a.kept, oldest)
	}
	size := int64(len(body))
	return &mcp.ResourceLink{
		URI: scheme + strconv.Itoa(a.last), Name: tool + "-" + strconv.Itoa(a.last), MIMEType: jsonType, Size: &size,
		Description: fmt.Sprintf("The whole answer of %s, %d bytes.", tool, size),
	}
}

// read returns a kept answer.
func (a *answers) read(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(r.Params.URI, scheme))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	body, ok := a.kept[number]
	if !ok {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: jsonType, Text: string(body)}}}, nil
}

// cutLines returns as many whole lines of a text as fit into a number of bytes, with a last line that says how many are left out.
func cutLines(text string, most int) (shown string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	if end == 0 {
		return fmt.Sprintf("… %d bytes in one line are left out", len(text)), true
	}
	return fmt.Sprintf("%s… %d more lines are left out", text[:end], strings.Count(strings.TrimRight(text[end:], "\n"), "\n")+1), true
}
