package dev.apportion.example;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import dev.apportion.v1.Answer;
import dev.apportion.v1.ApportionServiceGrpc.ApportionServiceBlockingV2Stub;
import dev.apportion.v1.OpenSession;
import dev.apportion.v1.Policy;
import dev.apportion.v1.Reason;
import dev.apportion.v1.RunSessionRequest;
import dev.apportion.v1.RunSessionResponse;
import dev.apportion.v1.Snapshot;
import dev.apportion.v1.Step;
import dev.apportion.v1.StepBatch;
import dev.apportion.v1.Verdict;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.BlockingClientCall;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** A conversation about one snapshot: each question sees what the steps before it changed. */
final class Session implements AutoCloseable {
  private final BlockingClientCall<RunSessionRequest, RunSessionResponse> call;
  private final List<String> dimensions;

  Session(ApportionServiceBlockingV2Stub service, Snapshot snapshot, Policy policy) throws StatusException, InterruptedException {
    call = service.runSession();
    call.write(RunSessionRequest.newBuilder().setOpen(OpenSession.newBuilder().setSnapshot(snapshot).setPolicy(policy)).build());
    dimensions = read().getOpened().getBasis().getDimensionsList();
  }

  List<String> dimensions() {
    return dimensions;
  }

  /** Returns one answer for each step. A step that fails is a fault of this program. */
  List<Answer> ask(Step.Builder... steps) throws StatusException, InterruptedException {
    var batch = StepBatch.newBuilder().addAllSteps(Arrays.stream(steps).map(Step.Builder::build).toList());
    call.write(RunSessionRequest.newBuilder().setBatch(batch).build());
    var response = read();
    while (!response.hasAnswers()) {
      response = read();
    }
    for (var answer : response.getAnswers().getAnswersList()) {
      if (answer.hasError()) {
        throw new IllegalStateException(answer.getError().getMessage());
      }
    }
    return response.getAnswers().getAnswersList();
  }

  private RunSessionResponse read() throws StatusException, InterruptedException {
    var response = call.read();
    if (response == null) {
      throw Status.UNAVAILABLE.withDescription("the session has ended").asException();
    }
    return response;
  }

  @Override
  public void close() {
    call.halfClose();
  }

  /** What the details of a failed call say. */
  static String fault(StatusException error) {
    var status = StatusProto.fromThrowable(error);
    if (status == null || status.getDetailsCount() == 0) { // The call did not come to the server, or not back.
      return error.getStatus().getCode().name();
    }
    var words = new ArrayList<String>();
    try {
      for (Any detail : status.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          words.add(0, detail.unpack(ErrorInfo.class).getReason());
        } else if (detail.is(BadRequest.class)) {
          detail.unpack(BadRequest.class).getFieldViolationsList().forEach(v -> words.add(v.getField() + ": " + v.getDescription()));
        }
      }
    } catch (InvalidProtocolBufferException unreadable) {
      words.add(status.getMessage());
    }
    return String.join(", ", words);
  }

  /** The first reason of a verdict. */
  static String grounds(Verdict verdict, List<String> dimensions) {
    Reason reason = verdict.getReasons(0);
    var text = reason.getPlugin() + " " + reason.getCode(); // UNRECOGNIZED: only a newer version knows it.
    if (!reason.hasDimension()) {
      return text;
    }
    var numbers = ", %s: %.0f + %.0f > %.0f";
    var dimension = dimensions.get(reason.getDimension());
    return text + String.format(Locale.ROOT, numbers, dimension, reason.getHave(), reason.getNeed(), reason.getLimit());
  }
}
