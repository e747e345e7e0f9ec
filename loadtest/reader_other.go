//go:build !linux

package main

func newReader(k *sink, _ bool) (reader, error) { return newGoroutineReader(k), nil }
