package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // go-redis writes lines of its own; what they say comes as errors, too
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	os.Exit(report(os.Stderr, err))
}
