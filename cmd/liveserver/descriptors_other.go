//go:build !unix

package main

func descriptorLimit() int { return 0 }
func openDescriptors() int { return unknownDescriptors }
