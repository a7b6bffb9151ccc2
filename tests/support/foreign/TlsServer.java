// SPDX-License-Identifier: MIT
// HTTPS by the JDK's own server: java TlsServer.java KEYSTORE.p12; the password is "secret".
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.security.KeyStore;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

public class TlsServer {
    private static void reply(HttpExchange exchange, String text) {
        try (exchange) {
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, text.length());
            exchange.getResponseBody().write(text.getBytes());
        } catch (java.io.IOException gone) {
            System.err.println(gone);
        }
    }

    public static void main(String[] arguments) throws Exception {
        AtomicLong requests = new AtomicLong();
        char[] password = "secret".toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            store.load(file, password);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, password);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        HttpsServer server = HttpsServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(context));
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            requests.incrementAndGet();
            reply(exchange, "ok");
        });
        HttpServer counts = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        counts.createContext("/", exchange -> reply(exchange, requests.toString()));
        server.start();
        counts.start();
        System.out.println("listening on " + server.getAddress().getPort() + " counting on "
            + counts.getAddress().getPort());
    }
}
