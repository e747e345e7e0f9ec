package report

import (
	"fmt"

	"liveroom/loadtest/internal/client"
)

// Rounds are what a scenario repeats or compares; each fills in its own.
type Rounds struct {
	Ramp   []RampPoint  `json:"ramp,omitempty"`
	Churn  []ChurnRound `json:"churn,omitempty"`
	Slow   []Turn       `json:"slow,omitempty"`
	Fair   []Turn       `json:"fair,omitempty"`
	Frames []FrameRound `json:"frames,omitempty"`
	Joins  []JoinRound  `json:"joins,omitempty"`
	Tail   []TailRound  `json:"tail,omitempty"`
	Quota  *Quota       `json:"quota,omitempty"`
}

// RampPoint is the server at one number of idle sessions, met twice.
type RampPoint struct {
	Sessions   int     `json:"sessions"`
	Memory     float64 `json:"memory_bytes" col:"memory,B"`      // resident, untouched, after -hold
	Freed      float64 `json:"memory_freed_bytes" col:"freed,B"` // resident, in the second pass, after it was told to give back what it can
	Heap       float64 `json:"heap_bytes" col:"heap then,B"`     // Go heap in use then
	Goroutines float64 `json:"goroutines" col:"goroutines,0"`
	CPU        float64 `json:"cpu" col:"idle CPU,%"` // of one core, idle
	After      bool    `json:"after,omitempty"`      // everybody has left again, -hold and afterRest ago
}

func (p RampPoint) label() string {
	if p.After {
		return "all left"
	}
	return fmt.Sprint(p.Sessions)
}

// ChurnRound is the server after one round of viewers has gone.
type ChurnRound struct {
	Sessions   float64 `json:"sessions" col:"sessions left,0"` // as the server counts them
	Goroutines float64 `json:"goroutines" col:"goroutines,0"`
	Heap       float64 `json:"heap_bytes" col:"heap,B"` // in use, after a collection
	Memory     float64 `json:"memory_bytes" col:"memory,B"`
	Failed     int64   `json:"failed" col:"failed"`
}

// Turn is one turn of a comparison: the same trial without and with neighbours that may disturb it.
type Turn struct {
	Frozen int     `json:"frozen"` // readers that stopped reading
	Beside bool    `json:"beside"` // the huge room was busy
	P50    float64 `json:"p50_seconds" col:"p50,s"`
	P99    float64 `json:"p99_seconds" col:"p99,s"`
	Closed int     `json:"closed" col:"cut off"`               // frozen readers that the server had cut off at the turn's end
	Memory float64 `json:"memory_bytes" col:"server memory,B"` // at the turn's end; 0 when unknown
}

// Disturbed reports whether there were neighbours.
func (t Turn) Disturbed() bool { return t.Frozen > 0 || t.Beside }

func (t Turn) label() string {
	switch {
	case t.Beside:
		return "beside a busy room"
	case t.Frozen > 0:
		return fmt.Sprintf("with %d frozen", t.Frozen)
	}
	return "alone"
}

// FrameRound is one turn of the server and one of the bare loop.
type FrameRound struct {
	Bytes  float64 `json:"bytes" col:"bytes,0"`                                         // of an average frame, header included
	Server float64 `json:"server_seconds_per_frame" col:"server,s,frame_cpu"`           // processor time of all the server did, but for what it does while idle
	Bare   float64 `json:"bare_seconds_per_frame" col:"bare write(2),s,frame_cpu_bare"` // of the bare loop, the same number of frames and bytes
	Ratio  float64 `json:"ratio" col:"ratio,3,frame_ratio"`                             // of the two
}

// JoinRound is one turn of the server and one of the bare upgrade loop: the same viewers by the same client.
type JoinRound struct {
	Server float64 `json:"server_joins_per_second" col:"joins/s,0,joins_per_second"`
	Bare   float64 `json:"bare_joins_per_second" col:"bare upgrade loop,0,joins_per_second_bare"`
	Ratio  float64 `json:"ratio" col:"ratio,3,joins_ratio"`
	CPU    float64 `json:"server_seconds_per_join" col:"server CPU per join,s,join_cpu"` // processor time
}

// TailRound is the small rooms at one rate.
type TailRound struct {
	Rate     float64 `json:"messages_per_second"`
	Delivery float64 `json:"server_seconds_per_delivery" col:"CPU per delivery,s"` // processor time of all the server did
	Frame    float64 `json:"server_seconds_per_frame" col:"per frame,s"`
	Bare     float64 `json:"bare_seconds_per_frame" col:"bare write(2),s"`                        // of a bare loop that writes at the same times to as many sockets
	Message  float64 `json:"seconds_per_message_beyond_writes" col:"per message beyond writes,s"` // what a message costs besides those writes
	P50      float64 `json:"p50_seconds" col:"p50,s"`
	P99      float64 `json:"p99_seconds" col:"p99,s"`
}

func (t TailRound) label() string { return fmt.Sprintf("%.0f", t.Rate) }

// Quota is how a quota held over several nodes.
type Quota struct {
	Rate   int64        `json:"rate_per_second"`
	Burst  int64        `json:"burst"`
	Nodes  int          `json:"nodes"` // at the start
	Stages []QuotaStage `json:"stages"`
	User   *QuotaStage  `json:"user,omitempty"`
	Proof  Evidence     `json:"evidence"`
	Worst  Window       `json:"worst_window"`
	Failed float64      `json:"redis_calls_failed"`    // in the stages, came to nothing or too late
	Away   float64      `json:"redis_seconds_without"` // all nodes together: each admits its share alone then
}

// QuotaStage is one stretch of the run. What was admitted belongs to the stage in which it was admitted, whenever it was
// due.
type QuotaStage struct {
	Name        string  `json:"name"`
	About       string  `json:"about"`
	At          float64 `json:"at_seconds"`
	Seconds     float64 `json:"seconds" col:"seconds,1"`
	Attempts    int64   `json:"attempts"`
	Demand      float64 `json:"demand_per_second" col:"demand/s,0"`
	Admitted    int64   `json:"admitted" col:"admitted"`
	Level       int64   `json:"level"`                           // of the exact bucket at the stage's begin
	Allowed     int64   `json:"allowed" col:"allowed"`           // level + rate × seconds
	Left        int64   `json:"left" col:"left"`                 // level at its end: what the bound would still have allowed
	Utilisation float64 `json:"utilisation" col:"utilisation,%"` // admitted / (rate × seconds + what was taken from the level), where demand was above the quota throughout; else 0
	Excess      int64   `json:"excess" col:"over"`               // of the worst window that ends in this stage
	RoomCalls   float64 `json:"room_calls_per_second" col:"room calls/s,1"`
	UserCalls   float64 `json:"user_calls_per_second" col:"user calls/s,1"`
	Saturated   bool    `json:"saturated"`
	Calm        bool    `json:"calm"`
}

func (s QuotaStage) label() string { return s.Name }

// Evidence is what the check rests on: who told of the admitted danmaku.
type Evidence struct {
	Answered int64 `json:"answered"`      // by an answer to the sender
	Heard    int64 `json:"heard_only"`    // by what others were shown alone: the sender's node died before it answered
	Differ   int64 `json:"differ"`        // answer and event named different instants
	Refused  int64 `json:"refused_heard"` // shown to others although the sender was told no
}

// Window is a stretch of time, both ends included, and what was admitted in it.
type Window struct {
	From     int64            `json:"from_ms"` // since the first attempt
	To       int64            `json:"to_ms"`
	Admitted int64            `json:"admitted"`
	Allowed  int64            `json:"allowed"`           // burst + rate × (to − from + 1 ms), what a whole message fits into
	ByNode   map[string]int64 `json:"by_node,omitempty"` // who admitted them
}

// Bound is the room's quota and how well it held.
type Bound struct {
	Rate     int64   `json:"rate_per_second"`
	Burst    int64   `json:"burst"`
	Admitted int64   `json:"admitted"`
	Allowed  int64   `json:"allowed"` // burst + rate × the time between the first and the last admission
	Used     float64 `json:"used"`    // admitted / allowed
	Excess   int64   `json:"excess"`  // of the worst window
}

// ServerSample is what the server's processes looked like at one instant, all nodes together.
type ServerSample struct {
	At         float64 `json:"at_seconds"`                    // since sampling began
	CPU        float64 `json:"cpu" chart:"One core,server,%"` // since the sample before
	LoadCPU    float64 `json:"load_cpu" chart:"One core,this tool,%"`
	OtherCPU   float64 `json:"other_cpu" chart:"One core,everything else on this machine,%"`
	Memory     float64 `json:"memory_bytes" chart:"Memory of the server,resident,B"`
	Heap       float64 `json:"heap_bytes" chart:"Memory of the server,heap in use,B"`
	Goroutines float64 `json:"goroutines" chart:"In the server,goroutines,0"`
	Sessions   float64 `json:"sessions" chart:"In the server,sessions,0"`
}

// Environment is where a run took place.
type Environment struct {
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Processors int      `json:"processors"`
	Kernel     string   `json:"kernel,omitempty"`
	CPU        string   `json:"cpu,omitempty"`
	Load       string   `json:"load_average,omitempty"` // at the start
	Server     []string `json:"server,omitempty"`       // what /readyz says
}

// Band is a stretch of time with a name.
type Band struct {
	Name string  `json:"name"`
	From float64 `json:"from_seconds"` // since the first attempt
	To   float64 `json:"to_seconds"`
}

// Slot is one step of a trial's time line.
type Slot struct {
	At         float64                `json:"at_seconds"`                                        // its end, since the trial's start
	Deliveries int64                  `json:"deliveries" chart:"Read by all viewers,events/s,/"` // danmaku, gifts and likes
	Frames     int64                  `json:"frames" chart:"Read by all viewers,frames/s,/"`
	Missed     int64                  `json:"missed" chart:"Read by all viewers,announced as missed,/"`
	Bytes      int64                  `json:"bytes"`
	P50        float64                `json:"p50_seconds" chart:"Latency,danmaku p50,s"`
	P99        float64                `json:"p99_seconds" chart:"Latency,danmaku p99,s"`
	Max        float64                `json:"max_seconds" chart:"Latency,danmaku max,s"`
	GiftP99    float64                `json:"gift_p99_seconds" chart:"Latency,gift p99,s"`
	Classes    map[string]client.Flow `json:"classes,omitempty"`
}
