// Command liveserver is a live-room server: viewers' sockets, pages, the HTTP API and the operators' listener, on one
// binary that starts with nothing around it.
//
//	liveserver [serve] [flags]     run the server until SIGTERM or SIGINT
//	liveserver token [flags]       print a signed token
//	liveserver check -config F     validate a configuration without starting
//	liveserver health              ask the server on this machine whether it lives
//	liveserver doctor              examine what a node needs, and say what to do
//	liveserver top                 show a running node in a terminal
//	liveserver hook-test           ask the platform's hooks, and say what is wrong with the answers
//	liveserver backup FILE         write all that the running server keeps into a file
//	liveserver restore FILE        fill an empty data directory from it
//	liveserver version             print what was built
//
// The one idea: main reads what it is told, runs a node (internal/node) and decides nothing.
//
// Concurrency: [run] owns every goroutine it starts and returns after the last one ended. A second signal cuts the drain
// short, a third ends the process at once.
//
// Files: main.go (subcommands, exit codes), serve.go (signals, log), announce.go (what is printed at start), token.go, health.go, doctor.go and top.go, hooks.go, backup.go, reload.go, version.go (and its
// bill of materials).
package main
