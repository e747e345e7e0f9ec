//go:build !unix

package admit

func descriptorLimit() int { return 0 }
func openDescriptors() int { return unknownDescriptors }
