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
	tmp, err := os.CreateTemp(dir, ".secret-*")
	if err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(base64.RawURLEncoding.EncodeToString(raw[:]) + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return "", fmt.Errorf("write the secret: %w", err)
	}
	// A link, unlike a rename, never replaces the secret of a process that was faster.
	if err := os.Link(tmp.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep the secret: %w", err)
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems can't; the secret is there all the same
		d.Close()
	}
	return readSecret(name)
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
