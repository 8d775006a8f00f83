package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// Hash is the SHA-256 of a bearer token. Tokens are long and random, so a plain hash is sufficient.
type Hash [sha256.Size]byte

const hashPrefix = "sha256:"

var errHash = errors.New("expected the hash of a token: sha256: and 64 hexadecimal digits")

// ParseHash parses the output of String. Its error does not quote the text, which may be a token by mistake.
func ParseHash(text string) (Hash, error) {
	var hash Hash
	digits, ok := strings.CutPrefix(text, hashPrefix)
	if !ok || len(digits) != hex.EncodedLen(len(hash)) {
		return Hash{}, errHash
	}
	if _, err := hex.Decode(hash[:], []byte(digits)); err != nil {
		return Hash{}, errHash
	}
	return hash, nil
}

// HashOf returns the hash of a token.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// String returns sha256: and 64 hexadecimal digits.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// tokenPrefix makes tokens easy to find where they have no business, such as in a repository.
const tokenPrefix = "apportion_"

// NewToken returns a token of 256 random bits.
func NewToken() string {
	var random [32]byte
	// It never fails: a system without randomness ends the process.
	_, _ = rand.Read(random[:])
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// bearer takes the token out of the values of an authorization header.
func bearer(values []string) (string, bool) {
	const scheme = "bearer "
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	token := strings.TrimSpace(values[0][len(scheme):])
	return token, token != ""
}

// ring holds the tokens of all identities.
type ring struct {
	hashes []Hash
	owners []int
}

// owner returns the identity that a token belongs to, or -1. Every hash is compared up to its last byte, so that the time reveals nothing.
func (r *ring) owner(hash Hash) int {
	found := 0
	for i := range r.hashes {
		same := subtle.ConstantTimeCompare(hash[:], r.hashes[i][:])
		found = subtle.ConstantTimeSelect(same, r.owners[i]+1, found)
	}
	return found - 1
}
