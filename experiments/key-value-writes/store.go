// SPDX-License-Identifier: MIT

// A store of keys and values in memory, as the published one was: gRPC, and one lock around its writes. store [trace]: with
// the word it writes a line to its error output for each write. /store.Store/Put takes KEY=VALUE and answers with the
// length of the value. Over HTTP on a second port it tells "WRITES NANOSECONDS": writes so far, and the CPU time of the
// process.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

type store struct {
	sync.Mutex
	values map[string][]byte
	writes int64
}

func (s *store) put(request []byte) ([]byte, error) {
	at := bytes.IndexByte(request, '=')
	if at < 0 {
		return nil, status.Error(codes.InvalidArgument, "write it as KEY=VALUE")
	}
	key, value := string(request[:at]), request[at+1:]
	s.Lock()
	s.values[key] = value
	s.writes++
	s.Unlock()
	return strconv.AppendInt(nil, int64(len(value)), 10), nil
}

// Messages are bytes.
type raw struct{}

func (raw) Name() string                          { return "proto" }
func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}

func described(s *store, trace bool) *grpc.ServiceDesc {
	put := func(_ interface{}, _ context.Context, decode func(interface{}) error,
		_ grpc.UnaryServerInterceptor) (interface{}, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		if trace {
			log.Printf("put %q", request)
		}
		reply, err := s.put(request)
		return &reply, err
	}
	return &grpc.ServiceDesc{ServiceName: "store.Store", HandlerType: (*interface{})(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Put", Handler: put}}}
}

func (s *store) tell(answer http.ResponseWriter, _ *http.Request) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	s.Lock()
	defer s.Unlock()
	fmt.Fprintln(answer, s.writes, used.Utime.Nano()+used.Stime.Nano())
}

func listen() (net.Listener, int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener, listener.Addr().(*net.TCPAddr).Port
}

func main() {
	encoding.RegisterCodec(raw{})
	s := &store{values: map[string][]byte{}}
	calls, port := listen()
	counts, counting := listen()
	server := grpc.NewServer()
	server.RegisterService(described(s, len(os.Args) > 1 && os.Args[1] == "trace"), nil)
	go http.Serve(counts, http.HandlerFunc(s.tell))
	fmt.Printf("listening on %d counting on %d\n", port, counting)
	log.Fatal(server.Serve(calls))
}
