package dev.apportion.example;

import com.google.protobuf.util.JsonFormat;
import dev.apportion.v1.*;
import dev.apportion.v1.DecisionServiceGrpc.DecisionServiceBlockingV2Stub;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.StatusException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A small batch platform that leaves every fair-share decision to Apportion: who enters, who runs, who gives way. It keeps its records in
 * the contract's own messages, so that a snapshot is always at hand.
 */
public record Batch(DecisionServiceBlockingV2Stub service, Policy policy, Snapshot.Builder snapshot, long millis) {
  /** Takes a job unless it could not enter even an empty cluster. */
  private void submit(Job job) throws InterruptedException {
    var alone = Input.newBuilder().setSnapshot(snapshot.clone().clearJobs().addJobs(job)).setPolicy(policy);
    try {
      var deadline = Deadline.after(millis, TimeUnit.MILLISECONDS);
      var request = CheckEnqueueRequest.newBuilder().setInput(alone).build();
      var response = Session.again(deadline, () -> service.withDeadline(deadline).checkEnqueue(request));
      var verdict = response.getEnqueue().getJobs(0).getVerdict();
      if (verdict.getVote() != Vote.VOTE_PERMIT) {
        System.out.printf("refuse %s: %s%n", job.getUid(), Session.grounds(verdict, response.getBasis().getDimensionsList()));
      } else {
        snapshot.addJobs(job);
      }
    } catch (StatusException error) {
      System.out.printf("refuse %s: %s%n", job.getUid(), Session.fault(error));
    }
  }

  private void forget(List<String> uids) {
    var kept = snapshot.getJobsList().stream().filter(job -> !uids.contains(job.getUid())).toList();
    snapshot.clearJobs().addAllJobs(kept);
  }

  /** Admits jobs, then places tasks, queue by queue. What is not decided in time waits for the next cycle. */
  private void cycle() throws InterruptedException {
    try (var session = new Session(service, Deadline.after(millis, TimeUnit.MILLISECONDS), snapshot.build(), policy)) {
      var answers = session.ask(
          Step.newBuilder().setEnqueue(EnqueueStep.newBuilder().setMode(EnqueueMode.ENQUEUE_MODE_ACTION)),
          Step.newBuilder().setOrder(OrderStep.newBuilder().setQueues(Selector.getDefaultInstance())),
          Step.newBuilder().setOrder(OrderStep.newBuilder().setJobs(Selector.getDefaultInstance())));
      answers.get(0).getEnqueue().getJobsList().forEach(decided -> admit(decided, session.dimensions()));
      for (int queue : answers.get(1).getOrder().getItemsList()) {
        for (int number : answers.get(2).getOrder().getItemsList()) {
          var job = snapshot.getJobsBuilder(number);
          if (job.getQueue().equals(snapshot.getQueues(queue).getName()) && job.getPhase() == JobPhase.JOB_PHASE_INQUEUE) {
            place(session, job);
          }
        }
      }
    } catch (StatusException error) {
      System.out.printf("cut short: %s%n", Session.fault(error));
    }
  }

  private void admit(EnqueueVerdict decided, List<String> dimensions) {
    if (decided.getVerdict().getVote() != Vote.VOTE_PERMIT) {
      System.out.printf("hold %s: %s%n", decided.getUid(), Session.grounds(decided.getVerdict(), dimensions));
    } else {
      System.out.printf("enqueue %s%n", decided.getUid());
      snapshot.getJobsBuilder(decided.getJob()).setPhase(JobPhase.JOB_PHASE_INQUEUE);
    }
  }

  /** Runs a job's pending tasks where they fit, evicting others while it starves. A gang below its minimum is undone. */
  private void place(Session session, Job.Builder job) throws StatusException, InterruptedException {
    var tasks = tasks(snapshot.getJobsBuilderList());
    var mark = session.ask(Step.newBuilder().setMark(MarkStep.getDefaultInstance())).get(0).getMark().getMark();
    var standing = Step.newBuilder().setJobs(JobsStep.newBuilder().setJobs(Selector.newBuilder().addNames(job.getUid())));
    var placed = new LinkedHashMap<Task.Builder, Integer>();
    var evicted = new ArrayList<Task.Builder>();
    for (var task : tasks(List.of(job)).stream().filter(task -> !task.hasNode()).toList()) {
      var claimant = Selector.newBuilder().addNames(task.getUid());
      var where = Step.newBuilder().setNodes(NodesStep.newBuilder().setTasks(claimant).setTop(1));
      var answers = session.ask(
          Step.newBuilder().setAllocatable(AllocatableStep.newBuilder().setTasks(claimant)),
          Step.newBuilder().setPreemptive(PreemptiveStep.newBuilder().setTasks(claimant)),
          Step.newBuilder().setReclaim(ReclaimStep.newBuilder().setClaimant(claimant)), standing, where);
      var verdict = answers.get(0).getAllocatable().getTasks(0).getVerdict();
      if (verdict.getVote() != Vote.VOTE_PERMIT) {
        System.out.printf("wait %s: %s%n", task.getUid(), Session.grounds(verdict, session.dimensions()));
        break;
      }
      var node = answers.get(4).getNodes().getTasks(0).getNodesList();
      if (answers.get(3).getJobs().getJobs(0).getStarving().getVote() == Vote.VOTE_PERMIT
          && answers.get(1).getPreemptive().getTasks(0).getVerdict().getVote() == Vote.VOTE_PERMIT) {
        var victims = answers.get(2).getReclaim().getEvictionsList().iterator();
        while (node.isEmpty() && victims.hasNext()) {
          int victim = victims.next();
          var gone = TaskUpdate.newBuilder().setNumber(victim).setStatus(TaskStatus.TASK_STATUS_PENDING).setNoNode(true);
          var stopped = Event.newBuilder().setChange(Change.newBuilder().addTasks(gone));
          node = session.ask(Step.newBuilder().setEvent(stopped), where).get(1).getNodes().getTasks(0).getNodesList();
          evicted.add(tasks.get(victim));
        }
      }
      if (node.isEmpty()) {
        System.out.printf("wait %s: no node has room%n", task.getUid());
        break;
      }
      var place = Placement.newBuilder().setTasks(claimant).setNodes(Selector.newBuilder().addAllIndices(node));
      session.ask(Step.newBuilder().setEvent(Event.newBuilder().setPlace(place)));
      placed.put(task, node.get(0));
    }
    if (session.ask(standing).get(0).getJobs().getJobs(0).getReady().getVote() != Vote.VOTE_PERMIT) {
      session.ask(Step.newBuilder().setRollback(RollbackStep.newBuilder().setMark(mark)));
      return;
    }
    for (var task : evicted) {
      System.out.printf("evict %s%n", task.getUid());
      task.clearNode().setStatus(TaskStatus.TASK_STATUS_PENDING);
    }
    placed.forEach((task, node) -> {
      System.out.printf("run %s on %s%n", task.getUid(), snapshot.getNodes(node).getName());
      task.setNode(node).setStatus(TaskStatus.TASK_STATUS_RUNNING);
    });
  }

  private static List<Task.Builder> tasks(List<Job.Builder> jobs) {
    var groups = jobs.stream().flatMap(job -> job.getGroupsBuilderList().stream());
    return groups.flatMap(group -> group.getTasksBuilderList().stream()).toList();
  }

  public static void main(String[] arguments) throws Exception {
    var scenario = SimulateRequest.newBuilder();
    JsonFormat.parser().merge(Files.readString(Path.of(arguments[1])), scenario);
    var millis = arguments.length > 2 ? (long) (1000 * Double.parseDouble(arguments[2])) : 10_000;
    var channel = Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create()).build();
    var input = scenario.getInputBuilder();
    var platform = new Batch(DecisionServiceGrpc.newBlockingV2Stub(channel), input.getPolicy(), input.getSnapshotBuilder(), millis);
    for (var step : scenario.getStepsList()) {
      var change = step.getEvent().getChange();
      for (var job : change.getJobsList()) platform.submit(job);
      platform.forget(change.getRemoveJobsList());
      if (!step.hasEvent()) platform.cycle();
    }
    channel.shutdownNow();
  }
}
