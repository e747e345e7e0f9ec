package main

// process is what the system says of one process.
type process struct {
	memory float64 // resident, bytes
	cpu    float64 // user and system, seconds since its start
}
