package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"

	"liveroom/limit"
)

//go:embed script/*.lua
var texts embed.FS

// script is what one kind of key runs.
type script struct {
	text, hash string
}

// scripts are one per kind, assembled so that each kind only carries itself.
type scripts [limit.KindSlots + 1]script

// assemble builds the scripts over a Lua function clock, which is Redis TIME but
// in tests.
func assemble(clock string) *scripts {
	var s scripts
	for kind, parts := range [...][]string{
		limit.KindBucket:  {"bucket", "step"},
		limit.KindFixed:   {"fixed", "step"},
		limit.KindSliding: {"sliding", "step"},
		limit.KindLog:     {"log", "step"},
		limit.KindSlots:   {"slots"},
	} {
		text := clock + "\n" + part("state")
		for _, name := range parts {
			text += "\n" + part(name)
		}
		hash := sha1.Sum([]byte(text)) // it names the text to Redis, and guards nothing
		s[kind] = script{text, hex.EncodeToString(hash[:])}
	}
	return &s
}

// part returns an embedded text. It is there, or the build had failed.
func part(name string) string {
	text, err := texts.ReadFile("script/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}
