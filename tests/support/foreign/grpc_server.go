// SPDX-License-Identifier: MIT

// A gRPC server by grpc-go: grpc_server [CERTIFICATE KEY]. It has the methods of ../grpcserver.py, and what it prints at
// its end is the same. Besides, Wait answers after the time that its request names ("5ms"); on SIGTERM each of its calls
// has a line "waited PORT HANDLER LEAST MOST": the client's port, and times in ns. They are how long the handler took, and
// from the end of the socket's read of the request to the begin and end of the first write after the handler. Calls of Wait
// must not overlap on a connection.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

var (
	lock     sync.Mutex
	counts   = map[string]int{}
	streamed = map[string]int{}
	waited   []string
	conns    = map[string]*timed{}
)

func count(where map[string]int, name string, number int) {
	lock.Lock()
	where[name] += number
	lock.Unlock()
}

// A connection that knows when it was read last, and when it is written after a call of Wait.
type timed struct {
	net.Conn
	lock    sync.Mutex
	read    time.Time
	since   time.Time     // the read of the request
	handler time.Duration // of a call that is not yet answered; or 0
}

func (c *timed) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	now := time.Now()
	c.lock.Lock()
	c.read = now
	c.lock.Unlock()
	return n, err
}

// The next call may end before this write returns: take the times of this one before.
func (c *timed) Write(from []byte) (int, error) {
	c.lock.Lock()
	since, handler := c.since, c.handler
	c.handler = 0
	c.lock.Unlock()
	begun := time.Now()
	n, err := c.Conn.Write(from)
	ended := time.Now()
	if handler != 0 {
		lock.Lock()
		waited = append(waited, fmt.Sprintf("waited %d %d %d %d", c.RemoteAddr().(*net.TCPAddr).Port, handler.Nanoseconds(),
			begun.Sub(since).Nanoseconds(), ended.Sub(since).Nanoseconds()))
		lock.Unlock()
	}
	return n, err
}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &timed{Conn: conn}
	lock.Lock()
	conns[conn.RemoteAddr().String()] = c
	lock.Unlock()
	return c, nil
}

// It tells a call when its request was read: the reading thread calls TagRPC before its next read.
type readTimes struct{}

type calledBy struct{}

type called struct {
	by   *timed
	read time.Time
}

func (readTimes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	from, _ := peer.FromContext(ctx)
	lock.Lock()
	by := conns[from.Addr.String()]
	lock.Unlock()
	by.lock.Lock()
	defer by.lock.Unlock()
	return context.WithValue(ctx, calledBy{}, called{by, by.read})
}

func (readTimes) HandleRPC(context.Context, stats.RPCStats) {}

func (readTimes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (readTimes) HandleConn(context.Context, stats.ConnStats) {}

// Messages are bytes, whatever they mean.
type raw struct{}

func (raw) Name() string                          { return "proto" }
func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}

func unary(name string, treat func(context.Context, []byte) ([]byte, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(_ interface{}, ctx context.Context,
		decode func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		count(counts, name, 1)
		count(counts, "bytes", len(request))
		reply, err := treat(ctx, request)
		return &reply, err
	}}
}

func streaming(name string, treat func(string, grpc.ServerStream) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ClientStreams: true, ServerStreams: true,
		Handler: func(_ interface{}, stream grpc.ServerStream) error { return treat(name, stream) }}
}

func receive(name string, stream grpc.ServerStream) ([]byte, error) {
	var message []byte
	err := stream.RecvMsg(&message)
	if err == nil && name != "Any" {
		count(streamed, name+" read", 1)
	}
	return message, err
}

func send(name string, stream grpc.ServerStream, message []byte) error {
	if name != "Any" {
		count(streamed, name+" sent", 1)
	}
	return stream.SendMsg(&message)
}

func echo(_ context.Context, request []byte) ([]byte, error) { return request, nil }

func missing(context.Context, []byte) ([]byte, error) {
	return nil, status.Error(codes.NotFound, "there is none")
}

func wait(ctx context.Context, request []byte) ([]byte, error) {
	begun := time.Now()
	asked, err := time.ParseDuration(string(request))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	time.Sleep(asked)
	call, took := ctx.Value(calledBy{}).(called), time.Since(begun)
	call.by.lock.Lock()
	call.by.since, call.by.handler = call.read, took
	call.by.lock.Unlock()
	return request, nil
}

func collect(name string, stream grpc.ServerStream) error {
	number := 0
	for ; ; number++ {
		if _, err := receive(name, stream); errors.Is(err, io.EOF) {
			return send(name, stream, []byte(strconv.Itoa(number)))
		} else if err != nil {
			return err
		}
	}
}

func serve(name string, stream grpc.ServerStream) error {
	message, err := receive(name, stream)
	for range message {
		if err == nil {
			err = send(name, stream, []byte("reply"))
		}
	}
	return err
}

func talk(name string, stream grpc.ServerStream) error {
	for {
		message, err := receive(name, stream)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := send(name, stream, message); err != nil {
			return err
		}
	}
}

func early(name string, stream grpc.ServerStream) error {
	if _, err := receive(name, stream); err != nil {
		return err
	}
	return status.Error(codes.ResourceExhausted, "enough")
}

func anyStatus(name string, stream grpc.ServerStream) error {
	first, err := receive(name, stream)
	for err == nil {
		_, err = receive(name, stream)
	}
	for n := 0; n < int(first[1]); n++ {
		if err := send(name, stream, []byte("message")); err != nil {
			return err
		}
	}
	count(counts, fmt.Sprintf("status %d", first[0]), 1)
	return status.Error(codes.Code(first[0]), fmt.Sprintf("%*s", int(first[2]), ""))
}

func print(names map[string]int) {
	lines := []string{}
	for name, number := range names {
		lines = append(lines, fmt.Sprintf("%s=%d", name, number))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

func main() {
	encoding.RegisterCodec(raw{})
	options := []grpc.ServerOption{grpc.StatsHandler(readTimes{})}
	if len(os.Args) > 2 {
		identity, err := credentials.NewServerTLSFromFile(os.Args[1], os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(identity))
	}
	listens, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Service", HandlerType: (*interface{})(nil),
		Methods: []grpc.MethodDesc{unary("Echo", echo), unary("Missing", missing), unary("Wait", wait)},
		Streams: []grpc.StreamDesc{streaming("Collect", collect), streaming("Serve", serve), streaming("Talk", talk),
			streaming("Early", early), streaming("Any", anyStatus)}}, nil)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGTERM)
	go func() {
		<-over
		server.Stop()
	}()
	fmt.Printf("listening on %d\n", listens.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener{listens}); err != nil {
		log.Fatal(err)
	}
	lock.Lock()
	print(counts)
	print(streamed)
	for _, line := range waited {
		fmt.Println(line)
	}
}
