// SPDX-License-Identifier: MIT

// HTTPS by Go's net/http: tls_server CERTIFICATE KEY [ANYTHING]. With a third argument it offers HTTP/2, too.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	var requests atomic.Int64
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	counts, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	})}
	if len(os.Args) < 4 {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	go http.Serve(counts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, requests.Load())
	}))
	fmt.Printf("listening on %d counting on %d\n", listener.Addr().(*net.TCPAddr).Port,
		counts.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
