package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// untraced are those on the way of a danmaku from a room to its viewers, and those that are libraries.
var untraced = []string{
	"liveroom/protocol", "liveroom/limit", "liveroom/limit/cluster", "liveroom/limit/redisstore", "liveroom/conn", "liveroom/conn/frame", "liveroom/conn/socket",
	"liveroom/fanout/feed", "liveroom/room/audience", "liveroom/internal/lock", "liveroom/loadtest",
}

// edges says which packages of ours each package may import, and why no others. A package that is not listed may import
// anything that lists it nowhere as forbidden.
var edges = map[string]struct {
	allowed []string
	reason  string
}{
	"liveroom/internal/words":  {nil, "words are files, and what is said in them knows nothing of who says it"},
	"liveroom/protocol":        {[]string{"liveroom/internal/words"}, "protocol knows the words alone: the vocabulary must be usable by every package, and by a client, without the server"},
	"liveroom/limit":           {nil, "limit is a leaf: it is a library of its own, and knows nothing of rooms"},
	"liveroom/limit/cluster":   {[]string{"liveroom/limit"}, "who may spend what of a shared quota is decided behind the engine's interface, which knows nothing of it"},
	"liveroom/room":            {[]string{"liveroom/protocol", "liveroom/limit", "liveroom/room/audience", "liveroom/room/people", "liveroom/room/raid", "liveroom/internal/admit", "liveroom/internal/filter"}, "a room knows neither sockets nor NATS: both are handed to it as interfaces, so that it can be tested alone"},
	"liveroom/room/audience":   {[]string{"liveroom/protocol", "liveroom/limit"}, "what is shown knows nothing of who was admitted and why"},
	"liveroom/room/people":     {nil, "who is counted knows nothing of what they say, or where it is stored"},
	"liveroom/room/raid":       {nil, "what a raid is does not depend on who holds its messages, and where"},
	"liveroom/conn/frame":      {[]string{"liveroom/protocol"}, "frames are read and written without a session, so that they can be held to another reader of them"},
	"liveroom/conn/socket":     {nil, "what the kernel is asked knows nothing of what is sent"},
	"liveroom/conn":            {[]string{"liveroom/protocol", "liveroom/limit", "liveroom/conn/frame", "liveroom/conn/socket"}, "a socket knows neither rooms nor NATS: the lobby seats it"},
	"liveroom/internal/lock":   {nil, "what proves the order of all locks is below them all"},
	"liveroom/internal/filter": {[]string{"liveroom/protocol", "liveroom/internal/edition"}, "words are found in texts, whoever says them and wherever"},
	"liveroom/internal/admit":  {[]string{"liveroom/protocol", "liveroom/limit"}, "what comes in, and what a refusal is called, is decided below rooms, sockets and API, which all ask"},
	"liveroom/cmd/liveserver":  {[]string{"liveroom/protocol", "liveroom/internal/config", "liveroom/internal/node", "liveroom/internal/token", "liveroom/internal/top"}, "main decides nothing: it reads what it is told and runs a node; parts are plugged together in internal/node"},
	"liveroom/docs":            {nil, "docs only embeds a page"},
	"liveroom/web":             {nil, "web only embeds files"},
	"liveroom/loadtest":        {[]string{"liveroom/protocol", "liveroom/loadtest/internal/client", "liveroom/loadtest/internal/process", "liveroom/loadtest/internal/report"}, "the load generator is a black box: what it measures must not be what it imports"},

	"liveroom/fanout":          {[]string{"liveroom/protocol", "liveroom/fanout/feed", "liveroom/fanout/link", "liveroom/fanout/presence", "liveroom/fanout/question", "liveroom/fanout/store"}, "the assembly owns the parts and knows neither rooms nor sockets"},
	"liveroom/fanout/link":     {[]string{"liveroom/protocol"}, "the way to NATS is below all that is carried over it"},
	"liveroom/fanout/feed":     {[]string{"liveroom/protocol", "liveroom/fanout/link"}, "a feed is handed a bus and a store as interfaces, so that another of each is one package"},
	"liveroom/fanout/store":    {[]string{"liveroom/protocol", "liveroom/fanout/link"}, "what is stored knows neither the bus nor who is there: rooms are told by an interface"},
	"liveroom/fanout/presence": {[]string{"liveroom/protocol", "liveroom/fanout/link"}, "who is there is nobody else's business"},
	"liveroom/fanout/question": {[]string{"liveroom/fanout/link"}, "a question is handed the names of the other nodes"},

	"liveroom/internal/top":      {nil, "a node is shown by what anybody with its admin address can ask for"},
	"liveroom/internal/trace":    {nil, "an operation is seen whatever it is"},
	"liveroom/internal/backup":   {nil, "what is in a stream is the store's"},
	"liveroom/internal/journal":  {nil, "logs are merged and gaps told without knowing what is in them or where they lie"},
	"liveroom/internal/signin":   {[]string{"liveroom/protocol", "liveroom/internal/token"}, "who has signed in is told to the API, which decides what that is good for"},
	"liveroom/internal/webhook":  {[]string{"liveroom/internal/journal", "liveroom/internal/hook"}, "what is delivered is the journal's, and how is the hook's: neither knows rooms or NATS"},
	"liveroom/internal/hook":     {nil, "how a platform is asked knows nothing of what it is asked"},
	"liveroom/internal/hooktest": {nil, "what stands for the platform in tests shares nothing with what it tests"},
	"liveroom/internal/consult":  {[]string{"liveroom/protocol", "liveroom/limit", "liveroom/room", "liveroom/internal/hook"}, "what a platform says of joins and danmaku is turned into what a room does, and knows nothing of how rooms go on"},
	"liveroom/internal/payment":  {[]string{"liveroom/protocol", "liveroom/room", "liveroom/internal/hook"}, "who pays is settled between a room and a platform: the ledger is handed to it as an interface"},

	"liveroom/loadtest/internal/client":  {[]string{"liveroom/protocol"}, "viewers share the wire's vocabulary with the server, and none of its code that could be wrong"},
	"liveroom/loadtest/internal/process": {nil, "a process is started and measured, whatever it is"},
	"liveroom/loadtest/internal/report":  {[]string{"liveroom/loadtest/internal/client"}, "a result is told by what it holds: nothing is measured while it is written"},
}

// TestImports holds the packages to ARCHITECTURE.md's graph, and everything but cmd away from internal.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "liveroom/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, "liveroom/") || imported == "liveroom/internal/lock" && p.ImportPath != "liveroom/protocol" {
				continue // the order of locks is one over all packages, and a lock of it is a sync.Mutex
			}
			if imported == "liveroom/internal/trace" && !slices.Contains(untraced, p.ImportPath) {
				continue // a trace goes through all that somebody waits for
			}
			if rule, ok := edges[p.ImportPath]; ok && !slices.Contains(rule.allowed, imported) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.reason)
			}
			if strings.HasPrefix(imported, "liveroom/internal/") && !strings.HasPrefix(p.ImportPath, "liveroom/internal/") && p.ImportPath != "liveroom/cmd/liveserver" && imported != "liveroom/internal/admit" && imported != "liveroom/internal/filter" && imported != "liveroom/internal/words" {
				t.Errorf("%s imports %s: internal serves cmd/liveserver alone, but for the wording of refusals and what people read", p.ImportPath, imported)
			}
			if imported == "liveroom/internal/node" && p.ImportPath != "liveroom/cmd/liveserver" {
				t.Errorf("%s imports %s: a node is on top of all parts, and none of them knows of it", p.ImportPath, imported)
			}
			if strings.HasPrefix(imported, "liveroom/cmd/") {
				t.Errorf("%s imports %s: a command wires and is wired into nothing", p.ImportPath, imported)
			}
		}
	}
	if seen < len(edges) {
		t.Errorf("go list named %d packages", seen)
	}
}
