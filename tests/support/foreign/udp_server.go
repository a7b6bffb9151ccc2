// SPDX-License-Identifier: MIT
// A UDP server with a goroutine for each request, which sleeps 1 to 20 ms.
package main

import (
	"fmt"
	"math/rand"
	"net"
	"time"
)

func main() {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		panic(err)
	}
	fmt.Println("listening on", socket.LocalAddr().(*net.UDPAddr).Port)
	buffer := make([]byte, 2048)
	for {
		n, peer, err := socket.ReadFromUDP(buffer)
		if err != nil {
			panic(err)
		}
		reply := append([]byte(nil), buffer[:n]...)
		go func() {
			time.Sleep(time.Duration(1+rand.Intn(20)) * time.Millisecond)
			socket.WriteToUDP(reply, peer)
		}()
	}
}
