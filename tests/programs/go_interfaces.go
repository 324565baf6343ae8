// Prints the interfaces and their addresses as Go's runtime finds them.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	interfaces, err := net.Interfaces()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, one := range interfaces {
		addresses, err := one.Addrs()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(one.Index, one.Name, one.HardwareAddr, one.Flags, addresses)
	}
}
