// SPDX-License-Identifier: MIT

// Gotls is an HTTPS server by Go's own TLS: CERTIFICATE KEY [raw]. It logs "status method target protocol" of each request,
// and for /sleep?MS when its handler began and ended, by CLOCK_MONOTONIC. With "raw" it reads into memory on the stack, which
// moves, and speaks HTTP/1.1.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var lock sync.Mutex

func say(format string, values ...any) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Printf(format+"\n", values...)
}

func now() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func status(path string) int {
	if strings.HasPrefix(path, "/api/") {
		return 404
	} else if path == "/exact" {
		return 503
	}
	return 200
}

func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/sleep" {
		begun := now()
		ms, _ := strconv.Atoi(r.URL.RawQuery)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		say("slept %d %d", begun, now())
	} else {
		say("%d %s %s %s", status(r.URL.Path), r.Method, r.URL.RequestURI(), r.Proto)
	}
	w.WriteHeader(status(r.URL.Path))
	w.Write([]byte("hello"))
}

// Read into memory on the stack, so far from the start of a new one.
func read(c *tls.Conn, depth int) string {
	var bytes [256]byte
	if depth > 0 {
		return read(c, depth-1) + string(bytes[depth:depth])
	}
	n, _ := c.Read(bytes[:])
	return string(bytes[:n])
}

// A goroutine begins with a small stack, which its calls enlarge: for some of the depths in the read.
func raw(c *tls.Conn) {
	text := make(chan string)
	head := ""
	for depth := 0; ; depth++ {
		go func(depth int) { text <- read(c, depth) }(depth % 40)
		part := <-text
		if part == "" {
			break
		}
		head += part
		if !strings.Contains(head, "\r\n\r\n") {
			continue
		}
		words := strings.Split(head, " ")
		code := status(strings.Split(words[1], "?")[0])
		say("%d %s %s HTTP/1.1", code, words[0], words[1])
		fmt.Fprintf(c, "HTTP/1.1 %d Said\r\nContent-Length: 2\r\n\r\nok", code)
		head = ""
	}
	c.Close()
}

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	listener, failed := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || failed != nil {
		panic("no certificate or no port")
	}
	fmt.Fprintln(os.Stderr, "port", listener.Addr().(*net.TCPAddr).Port)
	if len(os.Args) == 3 {
		panic(http.ServeTLS(listener, http.HandlerFunc(answer), os.Args[1], os.Args[2]))
	}
	for {
		c, err := listener.Accept()
		if err == nil {
			go raw(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}}))
		}
	}
}
