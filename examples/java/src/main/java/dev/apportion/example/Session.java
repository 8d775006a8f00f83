package dev.apportion.example;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.Durations;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.apportion.v1.Answer;
import dev.apportion.v1.DecisionServiceGrpc.DecisionServiceBlockingV2Stub;
import dev.apportion.v1.Basis;
import dev.apportion.v1.Cause;
import dev.apportion.v1.Input;
import dev.apportion.v1.OpenSession;
import dev.apportion.v1.Policy;
import dev.apportion.v1.RunSessionRequest;
import dev.apportion.v1.RunSessionResponse;
import dev.apportion.v1.Snapshot;
import dev.apportion.v1.Step;
import dev.apportion.v1.StepBatch;
import dev.apportion.v1.Verdict;
import io.grpc.Deadline;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.BlockingClientCall;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * A conversation about one snapshot: each question sees what the steps before it changed. Where its replica is lost or sends it away, it
 * goes on at another one, after the steps that changed something were done again.
 */
final class Session implements AutoCloseable {
  private static final int ATTEMPTS = 5;

  private final DecisionServiceBlockingV2Stub service;
  private final Deadline deadline;
  private final OpenSession open;
  private final List<Step> changes = new ArrayList<>();
  private BlockingClientCall<RunSessionRequest, RunSessionResponse> call;
  private boolean goingAway;
  private Basis basis;

  /** Opens a session that must be over at the deadline. */
  Session(DecisionServiceBlockingV2Stub service, Deadline deadline, Snapshot snapshot, Policy policy)
      throws StatusException, InterruptedException {
    this.service = service.withDeadline(deadline);
    this.deadline = deadline;
    open = OpenSession.newBuilder().setInput(Input.newBuilder().setSnapshot(snapshot).setPolicy(policy)).build();
    again(deadline, this::restore);
  }

  List<String> dimensions() {
    return basis.getDimensionsList();
  }

  /** Returns one answer for each step. A step that fails is a fault of this program. */
  List<Answer> ask(Step.Builder... builders) throws StatusException, InterruptedException {
    var steps = Arrays.stream(builders).map(Step.Builder::build).toList();
    var answers = again(deadline, () -> answered(steps));
    for (int i = 0; i < steps.size(); i++) {
      if (answers.get(i).getChanged()) {
        changes.add(steps.get(i));
      }
    }
    answers.stream().filter(Answer::hasError).findFirst().ifPresent(answer -> {
      throw new IllegalStateException(answer.getError().getMessage());
    });
    return answers;
  }

  @Override
  public void close() {
    if (call != null) {
      call.halfClose();
    }
    call = null;
  }

  private List<Answer> answered(List<Step> steps) throws StatusException, InterruptedException {
    if (call == null) {
      restore();
    }
    var answers = exchange(batch(steps)).getAnswers().getAnswersList();
    if (goingAway) {
      close();
    }
    return answers;
  }

  private static RunSessionRequest batch(List<Step> steps) {
    return RunSessionRequest.newBuilder().setBatch(StepBatch.newBuilder().addAllSteps(steps)).build();
  }

  private Basis restore() throws StatusException, InterruptedException {
    call = service.runSession();
    goingAway = false;
    var now = exchange(RunSessionRequest.newBuilder().setOpen(open).build()).getOpened().getBasis();
    basis = basis == null ? now : basis;
    if (!basis.getPolicyDigest().equals(now.getPolicyDigest()) || !basis.getEngineVersion().equals(now.getEngineVersion())) {
      close();
      throw Status.ABORTED.withDescription("policy or engine are others where the session should have gone on: begin anew").asException();
    }
    if (!changes.isEmpty() && !exchange(batch(changes)).getAnswers().getAnswersList().stream().allMatch(Answer::getChanged)) {
      close();
      throw Status.ABORTED.withDescription("a step that succeeded before is refused: begin anew").asException();
    }
    return basis;
  }

  /** Says something, and returns what answers it. */
  private RunSessionResponse exchange(RunSessionRequest request) throws StatusException, InterruptedException {
    try {
      call.write(request);
      for (var response = call.read(); response != null; response = call.read()) {
        if (!response.hasGoingAway()) {
          return response;
        }
        goingAway = true;
      }
      throw Status.UNAVAILABLE.withDescription("the session was ended").asException();
    } catch (StatusException error) {
      call = null;
      throw error;
    }
  }

  /** A call. */
  interface Call<T> {
    T make() throws StatusException, InterruptedException;
  }

  /** Makes a call, and makes it again while servers are busy or lost: no call changes anything there. */
  static <T> T again(Deadline deadline, Call<T> call) throws StatusException, InterruptedException {
    for (int attempt = 1;; attempt++) {
      try {
        return call.make();
      } catch (StatusException error) {
        var pause = retryDelay(error);
        if (pause.isEmpty() || attempt == ATTEMPTS || pause.get() >= deadline.timeRemaining(TimeUnit.MILLISECONDS)) {
          throw error;
        }
        Thread.sleep(pause.get());
      }
    }
  }

  /** Milliseconds after which to ask again; empty: asking again does not help. */
  private static Optional<Long> retryDelay(StatusException error) {
    var unavailable = error.getStatus().getCode() == Status.Code.UNAVAILABLE;
    return detail(error, RetryInfo.class).map(told -> Durations.toMillis(told.getRetryDelay()))
        .or(() -> unavailable ? Optional.of(100L) : Optional.empty());
  }

  /** A detail of a failed call; empty: the call did not come to the server, or not back, or there is no such detail. */
  private static <M extends Message> Optional<M> detail(StatusException error, Class<M> kind) {
    try {
      for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (detail.is(kind)) {
          return Optional.of(detail.unpack(kind));
        }
      }
    } catch (InvalidProtocolBufferException unreadable) {
      // As if it were not there.
    }
    return Optional.empty();
  }

  /** The reason of a failed call, and the fields at fault. */
  static String fault(StatusException error) {
    var words = new ArrayList<String>();
    words.add(detail(error, ErrorInfo.class).map(ErrorInfo::getReason).orElse(error.getStatus().getCode().name()));
    for (var violation : detail(error, BadRequest.class).orElse(BadRequest.getDefaultInstance()).getFieldViolationsList()) {
      words.add(violation.getField() + ": " + violation.getDescription());
    }
    return String.join(", ", words);
  }

  /** The first cause of a verdict. */
  static String grounds(Verdict verdict, List<String> dimensions) {
    Cause cause = verdict.getCauses(0);
    var text = cause.getPlugin() + " " + cause.getCode(); // UNRECOGNIZED: only a newer version knows it.
    if (cause.getDimensionsCount() == 0) {
      return text;
    }
    var numbers = ", %s: %.0f + %.0f > %.0f";
    var dimension = dimensions.get(cause.getDimensions(0));
    return text + String.format(Locale.ROOT, numbers, dimension, cause.getHave(), cause.getNeed(), cause.getLimit());
  }
}
