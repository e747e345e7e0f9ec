// Package deploy holds no code: only what operators install beside the server, and the tests of it.
package deploy
