package fanout

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestZeroConfigNeedsNameAndDirectory(t *testing.T) {
	err := Config{}.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, field := range []string{"NodeID", "DataDir"} {
		if !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s is not named in %q", field, err)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 1 {
		t.Errorf("%d faults: %v", n+1, err)
	}
	if err := (Config{NodeID: "n1", DataDir: "x"}).Validate(); err != nil {
		t.Error(err)
	}
}

// Every number and duration has a default, and a negative one is a fault that names its field.
func TestEveryFieldIsValidated(t *testing.T) {
	full := Config{NodeID: "n1", DataDir: "x"}.withDefaults()
	for i := range reflect.TypeFor[Config]().NumField() {
		field := reflect.TypeFor[Config]().Field(i)
		c := full
		v := reflect.ValueOf(&c).Elem().Field(i)
		switch v.Kind() {
		case reflect.Int, reflect.Int64:
			if v.IsZero() {
				t.Errorf("%s has no default", field.Name)
			}
			v.SetInt(-1)
		default:
			continue
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field.Name+":") {
			t.Errorf("%s of -1: %v", field.Name, err)
		}
	}
}

// A fault names its field and shows nothing of a URL, which may carry a password.
func TestFaultsOfServersAreNamedAndKeepSecrets(t *testing.T) {
	for _, bad := range []string{
		"nats://u:hidden@h:port", "http://u:hidden@h:1", "u:hidden@h:4222", "nats://u:hidden@", "nats://u:hidden@h:1/x", "tls://u:hid den@h",
		"nats://u:hidden@h:1?x=hidden", "hidden",
	} {
		err := Config{NodeID: "n1", URLs: []string{"nats://h:4222", bad}}.Validate()
		if err == nil || !strings.Contains(err.Error(), "URLs[1]:") || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	err := Config{NodeID: "n1", URLs: []string{"nats://h"}, Credentials: "/nonexistent/file"}.Validate()
	if err == nil || !strings.Contains(err.Error(), "Credentials:") {
		t.Error(err)
	}
	if err := (Config{NodeID: "n1", URLs: []string{"nats://u:p@h:4222", "tls://token@[::1]:1", "nats://h"}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestFieldsThatContradict(t *testing.T) {
	for field, c := range map[string]Config{
		"NodeTimeout":      {AnnounceEvery: 5 * time.Second},
		"ProbeTimeout":     {ProbeEvery: 2 * time.Second},
		"Credentials, TLS": {Credentials: "file"},
	} {
		c.NodeID, c.DataDir = "n1", "x"
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
