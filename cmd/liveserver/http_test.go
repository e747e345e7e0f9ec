package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// response is an answer of the HTTP API.
type response struct {
	status int
	header http.Header
	body   event
}

// call makes one call of the API on the main listener.
func (s *server) call(t *testing.T, method, path, token, body string, header ...string) response {
	t.Helper()
	return request(t, method, s.url+"/api/v1"+path, token, body, header...)
}

func request(t *testing.T, method, url, token, body string, header ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := response{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, url, err, raw)
		}
	}
	return out
}

// TestTheAPIDescribesItself, to everybody, on both listeners.
func TestTheAPIDescribesItself(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	want := readFile(t, "../../docs/openapi.yaml")
	for _, at := range []string{s.url, s.admin} {
		res, err := http.Get(at + "/api/v1/openapi.yaml")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != want || res.Header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%s: %d bytes as %s, %v", at, len(got), res.Header.Get("Content-Type"), err)
		}
	}
}
