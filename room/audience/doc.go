// Package audience is a room's members and what they are shown: the tick, the recent danmaku, the counts.
//
// The one idea: everything a room shows is appended to the current tick's batch and leaves as one [protocol.Broadcast] for all
// members. The first event after a quiet tick leaves at once; while there is traffic, one flush follows per tick. What a
// joining member is told and what reaches it live are told apart in one critical section, so that it misses nothing and sees
// nothing twice.
//
// # What a viewer is told
//
// Danmaku, gifts and control in the order of the calls; like totals at most once in [Config.LikeEvery]; the online count at
// most once in [Config.OnlineEvery]; all in the tick's one frame. A room that is behind by a whole frame (1 MiB) drops danmaku
// and says missed.
//
// # Concurrency
//
// All methods may be called from any goroutine, and none of them blocks. Nothing is delivered or built under the audience's lock. A runner
// goroutine exists while there is something to show; there is never more than one, so a room has one order. A flush makes way
// every 128 members, so that gifts and small rooms do not wait for a large one.
//
// # What it does not do
//
// It admits nothing and knows no users, limits, settings or bus: what it is given is shown.
//
// Files: audience.go (who comes, what is shown), tick.go (when), shards.go (to whom, in which order),
// history.go (what newcomers are shown), counts.go (likes, online), config.go.
package audience
