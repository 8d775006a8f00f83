package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

const (
	// signature is the ending of a signature, which lies beside its file.
	signature = ".minisig"
	// passwordVariable is the environment variable with the password of the signing key.
	passwordVariable = "MINISIGN_PASSWORD" //nolint:gosec // its name is no secret
)

// sign signs each file of a release with a key of minisign. Equal files and keys make equal signatures.
func (r *Release) sign(out io.Writer, key string) error {
	if key == "" {
		return errors.New("name the signing key with -key")
	}
	private, err := privateKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return r.eachFile(func(path, name string, data []byte) error {
		comment := fmt.Sprintf("file:%s version:%s", name, r.Version)
		signed := minisign.SignWithComments(private, data, comment, "signature of "+name)
		if err := os.WriteFile(path+signature, signed, 0o600); err != nil {
			return err
		}
		fmt.Fprintln(out, "signed", name)
		return nil
	})
}

// privateKey reads a key, with the password of the environment if it is encrypted.
func privateKey(file string) (minisign.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return minisign.PrivateKey{}, err
	}
	if minisign.IsEncrypted(text) {
		return minisign.DecryptKey(os.Getenv(passwordVariable), text)
	}
	var key minisign.PrivateKey
	err = key.UnmarshalText(text)
	return key, err
}

// checkSignatures verifies the signature of each file with a public key.
func (r *Release) checkSignatures(key string) error {
	public, err := minisign.PublicKeyFromFile(key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return r.eachFile(func(path, name string, data []byte) error {
		signed, err := os.ReadFile(path + signature)
		if err != nil {
			return err
		}
		if !minisign.Verify(public, data, signed) {
			return fmt.Errorf("%s is not signed by %s", name, key)
		}
		return nil
	})
}

// eachFile calls do with each file of a release that is no signature.
func (r *Release) eachFile(do func(path, name string, data []byte) error) error {
	entries, err := os.ReadDir(r.Out)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || strings.HasSuffix(entry.Name(), signature) {
			continue
		}
		path := filepath.Join(r.Out, entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := do(path, entry.Name(), data); err != nil {
			return err
		}
	}
	return nil
}
