// Package payment has gifts paid for by the platform: money is reserved, the gift is stored with the platform's reference, and the
// platform is told; when anything is in doubt, the ledger decides and nobody guesses.
//
// The one idea: before the platform hears of a gift, an intent is on disk beside the ledger, and it goes when the platform has
// acknowledged the end. An intent's number is the attempt: no two reservations ever have the same. Whoever finds an intent that
// nobody works on first ends the attempt in the ledger, after which the store itself refuses its gift however late it comes, and
// then reads whether the gift had been stored: confirm, or cancel. That answer is the same for whoever asks, on any node and
// at any time, so that nobody needs a lock and settling twice does no harm.
//
//	intent ─▶ reserve ─▶ ledger ─▶ the sender's ack ─▶ confirm ─▶ intent away
//	             │          └─ refused ─▶ cancel ─▶ intent away
//	             │          └─ nobody knows ─▶ end the attempt, look ─▶ confirm or cancel ─▶ intent away
//	             └─ refused ─▶ intent away;  no answer ─▶ cancel ─▶ intent away
//
// Concurrency: [Till.Sell] may be called from any goroutine and returns within its context. What follows it runs on a fixed number of
// goroutines of [Till.Run]; what does not fit there is found by the sweep.
//
// What it does not do: it keeps no money, and judges no gift but by the answers of the platform and the ledger.
//
// Files: till.go (a gift's way), words.go (what is said to the platform and what it answers), settle.go (the end of an intent, and the
// sweep), metrics.go, trial.go (what a platform is asked before it goes live).
package payment
