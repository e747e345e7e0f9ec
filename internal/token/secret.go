package token

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SecretFile is the name of the generated secret in the data directory.
const SecretFile = "secret"

// secretBytes is the size of a generated secret, as RFC 7518, section 3.2 asks for HS256.
const secretBytes = 32

// Secret returns the secret kept in dir, and makes one of 32 random bytes when there is none. The file's text is the
// key, so it can be copied into auth.secret of another server as it is. It is written once, whole and readable by its
// owner alone, also when two processes start at the same time.
func Secret(dir string) (string, error) {
	name := filepath.Join(dir, SecretFile)
	if s, err := readSecret(name); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	var raw [secretBytes]byte
	rand.Read(raw[:]) // never fails since Go 1.24
	// A link, unlike a rename, never replaces the secret of a process that was faster.
	err := write(dir, base64.RawURLEncoding.EncodeToString(raw[:]), func(tmp string) error {
		if err := os.Link(tmp, name); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return readSecret(name)
}

// ReadSecret returns the secret kept in dir. Its error is fs.ErrNotExist where there is none.
func ReadSecret(dir string) (string, error) { return readSecret(filepath.Join(dir, SecretFile)) }

// KeepSecret replaces the secret kept in dir by the one that this node has in common with others, so that tokens made
// from dir are good on all of them. It reports whether another was there before.
func KeepSecret(dir, secret string) (changed bool, err error) {
	name := filepath.Join(dir, SecretFile)
	if old, err := readSecret(name); err == nil && old == secret {
		return false, nil
	}
	return true, write(dir, secret, func(tmp string) error { return os.Rename(tmp, name) })
}

// write puts secret into a file that place then gives its name.
func write(dir, secret string, place func(tmp string) error) error {
	tmp, err := os.CreateTemp(dir, ".secret-*")
	if err != nil {
		return fmt.Errorf("make a secret: %w", err)
	}
	defer os.Remove(tmp.Name()) // after a rename nothing is there any more
	_, err = tmp.WriteString(secret + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	if err := place(tmp.Name()); err != nil {
		return fmt.Errorf("keep the secret: %w", err)
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems can't; the secret is there all the same
		d.Close()
	}
	return nil
}

func readSecret(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if len(s) < secretBytes {
		return "", fmt.Errorf("%s holds %d bytes, not the %d or more of a secret; remove it to have a new one made", name, len(s), secretBytes)
	}
	return s, nil
}
