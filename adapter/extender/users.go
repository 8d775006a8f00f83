package extender

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Users maps the permitted users to the SHA-256 of their passwords: Volcano's plugin can send no credential other than basic authorization.
type Users map[string][sha256.Size]byte

// ReadUsers reads lines of `NAME:HEX`, HEX being the SHA-256 of the password. It skips empty lines and those that begin with #. Use long
// random passwords: for these a slower hash brings no advantage.
func ReadUsers(from io.Reader) (Users, error) {
	users := make(Users)
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, digest, ok := strings.Cut(line, ":")
		sum, err := hex.DecodeString(digest)
		if !ok || name == "" || err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("line %d: not NAME:HEX with the 64 digits of a SHA-256", n)
		}
		if _, twice := users[name]; twice {
			return nil, fmt.Errorf("line %d: %s is listed twice", n, name)
		}
		users[name] = [sha256.Size]byte(sum)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(users) == 0 {
		return nil, errors.New("no user is configured")
	}
	return users, nil
}

// Authorize reports whether this is the user's password, in constant time.
func (u Users) Authorize(user, password string) bool {
	want, known := u[user]
	sum := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && known
}
