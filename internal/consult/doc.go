// Package consult asks a platform who may come in and what may be shown, and turns its answers into what a room does.
//
// The one idea: an answer that is none (late, damaged, cut, or that says what nobody may say) is never guessed at: what then happens
// is the operator's to say ([Policy]), counted, and the same as while the platform is away.
//
// Concurrency: everything may be called from any goroutine; how many calls are under way is the endpoint's to bound.
//
// What it does not do: it gathers nothing and keeps no order, which are the room's; and a verdict that can't be carried out says nothing of
// the others of its call.
//
// Files: join.go, danmaku.go (what is asked and answered), policy.go (what happens without an answer), trial.go (what a platform is asked
// before it goes live).
package consult
