package main

import (
	"context"
	"os"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	os.Exit(report(os.Stderr, err))
}
