package cluster

import "net/http"

// leaving answers each request at the latest when its context ends. client-go runs the credential plugin of a kubeconfig without a context:
// one that hangs is left behind, and what waits for it ends with the process.
type leaving struct{ http.RoundTripper }

// answer is the result of a request.
type answer struct {
	response *http.Response
	err      error
}

// RoundTrip sends a request.
func (l leaving) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answers := make(chan answer)
	go func() {
		response, err := l.RoundTripper.RoundTrip(request)
		select {
		case answers <- answer{response, err}:
		case <-ctx.Done():
			if err == nil {
				_ = response.Body.Close()
			}
		}
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
