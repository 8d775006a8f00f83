// A small batch platform that leaves every fair-share decision to Apportion: who enters, who runs, who gives way.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include <google/protobuf/util/json_util.h>

#include "session.h"

namespace platform {

// Keeps its records in the contract's own messages, so that a snapshot is always at hand.
class Platform {
 public:
  Platform(v1::DecisionService::Stub& service, v1::Input world, std::chrono::milliseconds within)
      : service_(service), world_(std::move(world)), snapshot_(*world_.mutable_snapshot()), within_(within) {}

  // Takes a job unless it could not enter even an empty cluster.
  void submit(const v1::Job& job) {
    v1::CheckEnqueueRequest request;
    *request.mutable_input() = world_;
    request.mutable_input()->mutable_snapshot()->clear_jobs();
    *request.mutable_input()->mutable_snapshot()->add_jobs() = job;
    v1::CheckEnqueueResponse response;
    std::optional<std::string> why;
    try {
      const auto deadline = Clock::now() + within_;
      again(deadline, [&] {
        grpc::ClientContext context;
        context.set_deadline(deadline);
        check(service_.CheckEnqueue(&context, request, &response));
      });
      why = refusal(response.enqueue().jobs(0).verdict(), response.basis().dimensions());
    } catch (const CallError& error) {
      why = error.what();
    }
    if (why) {
      std::cout << "refuse " << job.uid() << ": " << *why << '\n';
    } else {
      *snapshot_.add_jobs() = job;
    }
  }

  void forget(const std::string& uid) {
    auto& jobs = *snapshot_.mutable_jobs();
    jobs.erase(std::remove_if(jobs.begin(), jobs.end(), [&](const auto& job) { return job.uid() == uid; }), jobs.end());
  }

  // Admits jobs, then places tasks, queue by queue. What is not decided in time waits for the next cycle.
  void cycle() try {
    Session session(service_, world_, Clock::now() + within_);
    const auto answers = session.ask(Steps().enqueue(v1::ENQUEUE_MODE_ACTION).order_queues().order_jobs());
    for (const auto& decided : answers[0].enqueue().jobs()) {
      if (const auto why = refusal(decided.verdict(), session.dimensions())) {
        std::cout << "hold " << decided.uid() << ": " << *why << '\n';
      } else {
        std::cout << "enqueue " << decided.uid() << '\n';
        snapshot_.mutable_jobs(decided.job())->set_phase(v1::JOB_PHASE_INQUEUE);
      }
    }
    for (const auto queue : answers[1].order().items()) {
      for (const auto number : answers[2].order().items()) {
        auto& job = *snapshot_.mutable_jobs(number);
        if (job.queue() == snapshot_.queues(queue).name() && job.phase() == v1::JOB_PHASE_INQUEUE) place(session, job);
      }
    }
  } catch (const CallError& error) {
    std::cout << "cut short: " << error.what() << '\n';
  }

 private:
  // Runs a job's pending tasks where they fit, evicting others while it starves. A gang below its minimum is undone.
  void place(Session& session, v1::Job& job) {
    const auto mark = session.ask(Steps().mark())[0].mark().mark();
    std::vector<std::pair<v1::Task*, std::uint32_t>> placed;
    std::vector<v1::Task*> evicted;
    const auto tasks = all_tasks(snapshot_);
    for (const auto& [owner, task] : tasks) {
      if (owner != &job || task->has_node()) continue;
      const auto answers = session.ask(Steps().allocatable(*task).preemptive(*task).reclaim(*task).standing(job).best_node(*task));
      if (const auto why = refusal(answers[0].allocatable().tasks(0).verdict(), session.dimensions())) {
        std::cout << "wait " << task->uid() << ": " << *why << '\n';
        break;
      }
      auto node = answers[4].nodes().tasks(0).nodes();
      if (answers[3].jobs().jobs(0).starving().vote() == v1::VOTE_PERMIT &&
          answers[1].preemptive().tasks(0).verdict().vote() == v1::VOTE_PERMIT) {
        for (const auto victim : answers[2].reclaim().evictions()) {
          if (!node.empty()) break;
          const auto freed = session.ask(Steps().stop(victim).best_node(*task));
          node = freed[1].nodes().tasks(0).nodes();
          evicted.push_back(tasks[victim].second);
        }
      }
      if (node.empty()) {
        std::cout << "wait " << task->uid() << ": no node has room\n";
        break;
      }
      session.ask(Steps().place(*task, node));
      placed.emplace_back(task, node[0]);
    }
    if (session.ask(Steps().standing(job))[0].jobs().jobs(0).ready().vote() != v1::VOTE_PERMIT) {
      session.ask(Steps().rollback(mark));
      return;
    }
    for (auto* task : evicted) {
      std::cout << "evict " << task->uid() << '\n';
      task->clear_node();
      task->set_status(v1::TASK_STATUS_PENDING);
    }
    for (const auto& [task, node] : placed) {
      std::cout << "run " << task->uid() << " on " << snapshot_.nodes(node).name() << '\n';
      task->set_node(node);
      task->set_status(v1::TASK_STATUS_RUNNING);
    }
  }

  v1::DecisionService::Stub& service_;
  v1::Input world_;
  v1::Snapshot& snapshot_;
  std::chrono::milliseconds within_;
};

}  // namespace platform

int main(int count, char** arguments) {
  std::ifstream file(count > 2 ? arguments[2] : "");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  apportion::v1::SimulateRequest scenario;
  if (const auto read = google::protobuf::util::JsonStringToMessage(text, &scenario); !read.ok()) {
    std::cerr << "usage: batch ADDRESS SCENARIO [SECONDS]: " << read.ToString() << '\n';
    return 2;
  }
  const std::chrono::milliseconds within(count > 3 ? static_cast<int>(1000 * std::stod(arguments[3])) : 10'000);
  const auto service = apportion::v1::DecisionService::NewStub(grpc::CreateChannel(arguments[1], grpc::InsecureChannelCredentials()));
  platform::Platform platform(*service, scenario.input(), within);
  for (const auto& step : scenario.steps()) {
    if (step.has_event()) {
      for (const auto& job : step.event().change().jobs()) platform.submit(job);
      for (const auto& uid : step.event().change().remove_jobs()) platform.forget(uid);
    } else {
      platform.cycle();
    }
  }
}
