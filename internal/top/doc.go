// Package top shows a running node in a terminal: what goes through it, what is refused, what is away, and its rooms.
//
// The one idea: a screen is a pure function of two looks at the node (look.go), which are what anybody with its admin address can ask for:
// /readyz, /metrics and the API. What is a rate is the difference of the two. So -once prints what the screen shows, and tests read it.
//
// Concurrency: a [Screen] belongs to whoever runs it; [Source.Look] may be called from any goroutine.
//
// What it does not do: it changes nothing, and knows of no terminal but its size and two dozen of its control sequences.
//
// Files: look.go (what is asked), view.go (what is shown), screen.go (keys, drawing).
package top
