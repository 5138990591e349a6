// Hello world by Vert.x, with the same answer as bench/serve/hello.js: one verticle with a server. Its
// argument is the number of instances, and there are as many event loops as the machine has cores. The port
// is in PORT.

import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Promise;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;

public class Hello extends AbstractVerticle {
  @Override
  public void start(Promise<Void> started) {
    vertx
        .createHttpServer()
        .requestHandler(
            request ->
                request
                    .response()
                    .putHeader("content-type", "text/plain")
                    .end("hello world"))
        .listen(Integer.parseInt(System.getenv("PORT")), "127.0.0.1")
        .<Void>mapEmpty()
        .onComplete(started);
  }

  public static void main(String[] arguments) {
    int cores = Runtime.getRuntime().availableProcessors();
    Vertx vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(cores));
    DeploymentOptions options =
        new DeploymentOptions().setInstances(Integer.parseInt(arguments[0]));
    vertx
        .deployVerticle(Hello.class, options)
        .onFailure(
            error -> {
              error.printStackTrace();
              System.exit(1);
            });
  }
}
