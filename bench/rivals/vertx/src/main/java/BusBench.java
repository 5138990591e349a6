// Two verticles on two event loops: one answers, or counts, the messages of the other over the event bus. Reads
// a line "KIND MS" (request or one-way, so long) and answers one with figures, as bench/loops/client.js does.
import io.vertx.core.AbstractVerticle;
import io.vertx.core.Context;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.eventbus.EventBus;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;

public final class BusBench {
  private static final int BATCH = 10_000;

  public static final class Server extends AbstractVerticle {
    private long count;

    @Override
    public void start() {
      EventBus bus = vertx.eventBus();
      bus.<Integer>consumer("echo", message -> message.reply(message.body()));
      bus.<Integer>consumer("count", message -> count++);
      bus.consumer("counted", message -> message.reply(count));
    }
  }

  public static final class Client extends AbstractVerticle {
    private final double[] times = new double[4_000_000];
    private int calls;
    private long sent;

    CompletableFuture<String> measure(String kind, long ms) {
      CompletableFuture<String> done = new CompletableFuture<>();
      context.runOnContext(ignored -> {
        calls = 0;
        long begin = System.nanoTime();
        if (kind.equals("request")) request(begin + ms * 1_000_000, done);
        else send(begin, begin + ms * 1_000_000, 0, done);
      });
      return done;
    }

    private void request(long end, CompletableFuture<String> done) {
      long before = System.nanoTime();
      vertx.eventBus().<Integer>request("echo", calls).onComplete(answer -> {
        long now = System.nanoTime();
        if (answer.failed() || answer.result().body() != calls) {
          done.completeExceptionally(new IllegalStateException("wrong answer"));
          return;
        }
        times[calls++] = (now - before) / 1000.0;
        if (now < end && calls < times.length) {
          request(end, done);
          return;
        }
        double[] sorted = Arrays.copyOf(times, calls);
        Arrays.sort(sorted);
        done.complete(String.format("{\"calls\":%d,\"p50Us\":%f,\"p99Us\":%f}",
            calls, sorted[calls / 2], sorted[(int) (calls * 0.99)]));
      });
    }

    private void send(long begin, long end, long inWindow, CompletableFuture<String> done) {
      for (int at = 0; at < BATCH; at++) vertx.eventBus().send("count", at);
      sent += BATCH;
      vertx.eventBus().<Long>request("counted", 0).onComplete(answer -> {
        long now = System.nanoTime();
        if (answer.failed() || answer.result().body() != sent) {
          done.completeExceptionally(new IllegalStateException("lost"));
        } else if (now < end) {
          send(begin, end, inWindow + BATCH, done);
        } else {
          long calls = inWindow + BATCH;
          done.complete(String.format("{\"calls\":%d,\"perSecond\":%f}", calls, calls / ((now - begin) / 1e9)));
        }
      });
    }
  }

  public static void main(String[] args) throws Exception {
    Vertx vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(2));
    Server server = new Server();
    Client client = new Client();
    vertx.deployVerticle(server, new DeploymentOptions()).await();
    vertx.deployVerticle(client, new DeploymentOptions()).await();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      System.out.println(client.measure(words[0], Long.parseLong(words[1])).get());
    }
    vertx.close().await();
  }
}
