// SPDX-License-Identifier: MIT
// A gRPC server by grpc-netty: java -cp JARS GrpcServer.java. It has the methods of grpc_server.go but Any, and prints
// the same at its end. MOST is from the read's begin.
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServerStreamTracer;
import io.grpc.Status;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

public class GrpcServer {
    static final Map<String, Integer> counts = new ConcurrentSkipListMap<>();
    static final Map<String, Integer> streamed = new ConcurrentSkipListMap<>();
    static final ConcurrentLinkedQueue<String> waited = new ConcurrentLinkedQueue<>();

    static void count(Map<String, Integer> where, String name, int number) {
        where.merge(name, number, Integer::sum);
    }

    /** A connection that knows when it was read last, and when it is written after a call of Wait. */
    static class Timed extends NioSocketChannel {
        static final ThreadLocal<Timed> last = new ThreadLocal<>();
        long readBegun;
        long readEnded;
        Called answered;
        volatile long handler;

        Timed(Channel parent, SocketChannel socket) {
            super(parent, socket);
        }

        @Override
        protected int doReadBytes(ByteBuf to) throws Exception {
            long begun = System.nanoTime();
            int size = super.doReadBytes(to);
            if (size > 0) {
                readBegun = begun;
                readEnded = System.nanoTime();
                last.set(this);
            }
            return size;
        }

        @Override
        protected void doWrite(ChannelOutboundBuffer from) throws Exception {
            long took = handler;
            long begun = System.nanoTime();
            super.doWrite(from);
            if (took != 0) {
                waited.add("waited " + remoteAddress().getPort() + " " + took + " " + (begun - answered.readEnded) + " "
                    + (System.nanoTime() - answered.readBegun));
                handler = 0;
            }
        }
    }

    static class Listener extends NioServerSocketChannel {
        @Override
        protected int doReadMessages(List<Object> accepted) throws Exception {
            SocketChannel socket = javaChannel().accept();
            if (socket == null) {
                return 0;
            }
            accepted.add(new Timed(this, socket));
            return 1;
        }
    }

    /** It tells a call when its request was read: the reading thread makes it before its next read. */
    static class Called extends ServerStreamTracer {
        static final Context.Key<Called> KEY = Context.key("called");
        final Timed by = Timed.last.get();
        final long readBegun = by.readBegun;
        final long readEnded = by.readEnded;

        @Override
        public Context filterContext(Context context) {
            return context.withValue(KEY, this);
        }
    }

    static class Tracers extends ServerStreamTracer.Factory {
        @Override
        public ServerStreamTracer newServerStreamTracer(String method, Metadata headers) {
            return new Called();
        }
    }

    /** Messages are bytes, whatever they mean. */
    static class Raw implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] message) {
            return new ByteArrayInputStream(message);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
        return MethodDescriptor.<byte[], byte[]>newBuilder(new Raw(), new Raw()).setType(type)
            .setFullMethodName("test.Service/" + name).build();
    }

    interface Unary {
        byte[] reply(byte[] request) throws Exception;
    }

    static void unary(ServerServiceDefinition.Builder service, String name, Unary treat) {
        service.addMethod(method(name, MethodType.UNARY), ServerCalls.asyncUnaryCall((request, replies) -> {
            count(counts, name, 1);
            count(counts, "bytes", request.length);
            try {
                replies.onNext(treat.reply(request));
                replies.onCompleted();
            } catch (Exception error) {
                replies.onError(error);
            }
        }));
    }

    /** A call of streams: what it does with each request, and at their end. */
    abstract static class Talk implements StreamObserver<byte[]> {
        final String name;
        final ServerCallStreamObserver<byte[]> replies;
        int number;

        Talk(String name, StreamObserver<byte[]> replies) {
            this.name = name;
            this.replies = (ServerCallStreamObserver<byte[]>) replies;
        }

        abstract void request(byte[] message);

        void end() {
            replies.onCompleted();
        }

        void send(byte[] message) {
            count(streamed, name + " sent", 1);
            replies.onNext(message);
        }

        @Override
        public void onNext(byte[] message) {
            number++;
            count(streamed, name + " read", 1);
            request(message);
        }

        @Override
        public void onCompleted() {
            end();
        }

        @Override
        public void onError(Throwable error) {
        }
    }

    static void streaming(ServerServiceDefinition.Builder service, String name, MethodType type,
        Function<StreamObserver<byte[]>, StreamObserver<byte[]>> treat) {
        service.addMethod(method(name, type), type == MethodType.CLIENT_STREAMING
            ? ServerCalls.asyncClientStreamingCall(treat::apply)
            : ServerCalls.asyncBidiStreamingCall(treat::apply));
    }

    static void serve(byte[] message, StreamObserver<byte[]> replies) {
        count(streamed, "Serve read", 1);
        count(streamed, "Serve sent", message.length);
        for (int n = 0; n < message.length; n++) {
            replies.onNext("reply".getBytes());
        }
        replies.onCompleted();
    }

    static byte[] await(byte[] request) throws InterruptedException {
        long begun = System.nanoTime();
        String text = new String(request);
        TimeUnit.MILLISECONDS.sleep(Integer.parseInt(text.substring(0, text.indexOf("ms"))));
        Called call = Called.KEY.get();
        call.by.answered = call;
        call.by.handler = System.nanoTime() - begun;
        return request;
    }

    static ServerServiceDefinition service() {
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("test.Service");
        unary(service, "Echo", request -> request);
        unary(service, "Missing", request -> {
            throw Status.NOT_FOUND.withDescription("there is none").asException();
        });
        unary(service, "Wait", GrpcServer::await);
        streaming(service, "Collect", MethodType.CLIENT_STREAMING, replies -> new Talk("Collect", replies) {
            @Override
            void request(byte[] message) {
            }

            @Override
            void end() {
                send(String.valueOf(number).getBytes());
                replies.onCompleted();
            }
        });
        service.addMethod(method("Serve", MethodType.SERVER_STREAMING),
            ServerCalls.asyncServerStreamingCall(GrpcServer::serve));
        streaming(service, "Talk", MethodType.BIDI_STREAMING, replies -> new Talk("Talk", replies) {
            @Override
            void request(byte[] message) {
                send(message);
            }
        });
        streaming(service, "Early", MethodType.CLIENT_STREAMING, replies -> new Talk("Early", replies) {
            @Override
            void request(byte[] message) {
                if (number == 1) {
                    replies.onError(Status.RESOURCE_EXHAUSTED.withDescription("enough").asException());
                }
            }

            @Override
            void end() {
            }
        });
        return service.build();
    }

    public static void main(String[] arguments) throws Exception {
        Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
            .channelFactory(Listener::new).bossEventLoopGroup(new NioEventLoopGroup(1))
            .workerEventLoopGroup(new NioEventLoopGroup(2)).addStreamTracerFactory(new Tracers())
            .addService(service()).build().start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.shutdownNow();
            counts.forEach((name, number) -> System.out.println(name + "=" + number));
            streamed.forEach((name, number) -> System.out.println(name + "=" + number));
            waited.forEach(System.out::println);
        }));
        System.out.println("listening on " + server.getPort());
        server.awaitTermination();
    }
}
