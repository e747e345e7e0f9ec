package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The article's faults with Redis need a Redis client. This version has none: its quotas live in memory and in the
// embedded store. Whoever brings a client in meets these tests and has to write them against a real Redis.
func noRedisClient(t *testing.T, fault string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.Contains(p, "redis") {
			t.Fatalf("the server now depends on %s: show here, on a real Redis, that %s", p, fault)
		}
	}
}

func TestFaultExpireInASecondCall(t *testing.T) {
	noRedisClient(t, "a key gets its time to live in the script that writes it, so that a crash in between blocks nobody for ever")
}

func TestFaultEvalOfTheWholeTextEachTime(t *testing.T) {
	noRedisClient(t, "scripts are called by their hash, with one reload when the server has forgotten them")
}

func TestFaultSortedSetMembersThatCollide(t *testing.T) {
	noRedisClient(t, "two requests of one millisecond are two, and no number in a script has more digits than it can hold")
}
