package service

import (
	"sync"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const (
	// mostDigests is the maximum number of remembered digests, and longestPolicy the size up to which the digest of a policy is remembered.
	mostDigests   = 256
	longestPolicy = 4 << 10
)

// policyDigests remembers the digests of policies that were sent, by their bytes: callers send few different ones, and to put a policy in
// its canonical form takes as long as to answer a small question. The zero value is empty.
type policyDigests struct {
	mutex sync.Mutex
	known map[string]string
}

// of returns the digest of a policy.
func (d *policyDigests) of(p *apportionv1.Policy) string {
	data, err := proto.Marshal(p)
	if err != nil || len(data) > longestPolicy {
		return decode.PolicyDigest(p)
	}
	d.mutex.Lock()
	digest, ok := d.known[string(data)]
	d.mutex.Unlock()
	if ok {
		return digest
	}
	digest = decode.PolicyDigest(p)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.known == nil || len(d.known) >= mostDigests {
		d.known = map[string]string{}
	}
	d.known[string(data)] = digest
	return digest
}
