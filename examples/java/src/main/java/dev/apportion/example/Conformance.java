package dev.apportion.example;

import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import dev.apportion.v1.DecisionServiceGrpc;
import dev.apportion.v1.SnapshotServiceGrpc;
import dev.apportion.v1alpha1.InsightServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor.PrototypeMarshaller;
import io.grpc.StatusException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Plays the conformance vectors: each message is the same in both forms, and each call is answered as written. */
public final class Conformance {
  private static final JsonFormat.Parser JSON = JsonFormat.parser().usingTypeRegistry(JsonFormat.TypeRegistry.newBuilder()
      .add(List.of(ErrorInfo.getDescriptor(), BadRequest.getDescriptor(), RetryInfo.getDescriptor())).build());

  private record Said(String role, Message message) {}

  /** Returns a vector's messages in order, with their roles. */
  private static List<Said> read(Path folder, MethodDescriptor<Message, Message> method) throws IOException {
    List<Path> files;
    try (var listed = Files.list(folder)) {
      files = listed.filter(file -> file.toString().endsWith(".binpb"))
          .sorted(Comparator.comparingInt(file -> Integer.parseInt(file.getFileName().toString().split("\\.")[0]))).toList();
    }
    var exchange = new ArrayList<Said>();
    for (var file : files) {
      var name = file.getFileName().toString();
      var role = name.split("\\.")[1];
      var kind = switch (role) {
        case "request" -> prototype(method.getRequestMarshaller());
        case "response" -> prototype(method.getResponseMarshaller());
        default -> Status.getDefaultInstance();
      };
      var message = kind.newBuilderForType().mergeFrom(Files.readAllBytes(file)).build();
      var text = kind.newBuilderForType();
      JSON.merge(Files.readString(file.resolveSibling(name.replace("binpb", "json"))), text);
      check(text.build(), message);
      exchange.add(new Said(role, message));
    }
    return exchange;
  }

  private static Message prototype(MethodDescriptor.Marshaller<Message> marshaller) {
    return ((PrototypeMarshaller<Message>) marshaller).getMessagePrototype();
  }

  private static void check(Object given, Object expected) {
    if (!expected.equals(given)) {
      throw new IllegalStateException("given:\n" + given + "expected:\n" + expected);
    }
  }

  @SuppressWarnings("unchecked")
  private static void replay(Channel channel, Path folder) throws Exception {
    var name = folder.getParent().getFileName().toString();
    var method = (MethodDescriptor<Message, Message>) Stream.of(
            DecisionServiceGrpc.getServiceDescriptor(), SnapshotServiceGrpc.getServiceDescriptor(), InsightServiceGrpc.getServiceDescriptor())
        .flatMap(service -> service.getMethods().stream())
        .filter(candidate -> name.equals(candidate.getBareMethodName())).findAny().orElseThrow();
    var exchange = read(folder, method);
    // On the wire every call is a stream in both directions.
    var call = ClientCalls.blockingBidiStreamingCall(channel, method.toBuilder().setType(MethodType.BIDI_STREAMING).build(),
        CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS));
    var requests = exchange.stream().filter(said -> said.role.equals("request")).count();
    for (var said : exchange) {
      switch (said.role) {
        case "request" -> {
          call.write(said.message);
          if (--requests == 0) {
            call.halfClose();
          }
        }
        case "response" -> check(call.read(), said.message);
        default -> {
          try {
            check(call.read(), said.message);
          } catch (StatusException error) {
            check(StatusProto.fromThrowable(error), said.message);
          }
        }
      }
    }
    call.cancel("played", null);
  }

  public static void main(String[] arguments) throws Exception {
    var channel = Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create()).build();
    List<Path> vectors;
    try (var found = Files.walk(Path.of(arguments[1]), 2)) {
      vectors = found.filter(path -> Files.isDirectory(path) && Path.of(arguments[1]).relativize(path).getNameCount() == 2).sorted().toList();
    }
    var failed = 0;
    for (var vector : vectors) {
      try {
        replay(channel, vector);
      } catch (Exception fault) {
        failed++;
        System.out.println(vector + ": " + fault);
      }
    }
    channel.shutdownNow();
    System.out.printf("%d passed, %d failed%n", vectors.size() - failed, failed);
    if (failed > 0 || vectors.isEmpty()) {
      throw new IllegalStateException("the vectors are not played as written");
    }
  }
}
