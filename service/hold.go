package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/apportion/apportion/wire"
)

// Hold stores the bytes of a snapshot as UploadSnapshot does, for the identity of ctx, and returns its digest. It is for the program that
// runs the server, not for clients.
func (s *Server) Hold(ctx context.Context, data []byte) (digest string, err error) {
	sum := sha256.Sum256(data)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	p := follow(ctx)
	_, cached, _, err := s.store(ctx, entryKey{IdentityOf(ctx), digest}, data, nil, p)
	if err != nil {
		return "", StatusOf(err)
	}
	s.cache.hold(entryKey{IdentityOf(ctx), digest})
	if !cached {
		return "", StatusOf(wire.Exceeded("identity_bytes", int64(len(data)), s.cache.quota,
			"the snapshot is larger than what one identity may have held here"))
	}
	return digest, nil
}
