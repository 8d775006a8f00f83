// What a client of Apportion wants beside its stubs: a session that is asked like a function and outlives its replica, a second attempt
// where that helps, and errors and reasons in words.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "apportion/v1/service.grpc.pb.h"

namespace platform {

namespace v1 = apportion::v1;

using Clock = std::chrono::system_clock;
using Names = google::protobuf::RepeatedPtrField<std::string>;
using Nodes = google::protobuf::RepeatedField<std::uint32_t>;

// What the details of a failed call say.
std::string fault(const grpc::Status& status);

// A call that failed.
class CallError : public std::runtime_error {
 public:
  explicit CallError(grpc::Status status) : std::runtime_error(fault(status)), status_(std::move(status)) {}
  const grpc::Status& status() const { return status_; }

 private:
  grpc::Status status_;
};

// Throws the CallError of a call that failed.
void check(const grpc::Status& status);

// Makes a call, and makes it again while it throws a CallError which says that the server is busy or lost: no call changes anything there.
void again(Clock::time_point deadline, const std::function<void()>& call);

// Steps of a session, of which only what is asked about is said.
class Steps {
 public:
  Steps& enqueue(v1::EnqueueMode mode) { return add().mutable_enqueue()->set_mode(mode), *this; }
  Steps& order_queues() { return add().mutable_order()->mutable_queues(), *this; }
  Steps& order_jobs() { return add().mutable_order()->mutable_jobs(), *this; }
  Steps& standing(const v1::Job& job) { return add().mutable_jobs()->mutable_jobs()->add_names(job.uid()), *this; }
  Steps& allocatable(const v1::Task& task) { return name(add().mutable_allocatable()->mutable_tasks(), task); }
  Steps& preemptive(const v1::Task& task) { return name(add().mutable_preemptive()->mutable_tasks(), task); }
  Steps& reclaim(const v1::Task& claimant) { return name(add().mutable_reclaim()->mutable_claimant(), claimant); }
  Steps& best_node(const v1::Task& task);
  Steps& place(const v1::Task& task, const Nodes& nodes);
  // A task stops, and waits again.
  Steps& stop(std::uint32_t task);
  Steps& mark() { return add().mutable_mark(), *this; }
  Steps& rollback(std::uint32_t mark) { return add().mutable_rollback()->set_mark(mark), *this; }

  const v1::StepBatch& batch() const { return batch_; }

 private:
  v1::Step& add() { return *batch_.add_steps(); }
  Steps& name(v1::Selector* tasks, const v1::Task& task) { return tasks->add_names(task.uid()), *this; }

  v1::StepBatch batch_;
};

// A conversation about one snapshot, which must be over at the deadline: each question sees what the steps before it changed. Where its
// replica is lost or sends it away, it goes on at another one, after the steps that changed something were done again.
class Session {
 public:
  Session(v1::DecisionService::Stub& service, const v1::Input& input, Clock::time_point deadline);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { leave(); }

  // Returns one answer for each step. A step that fails is a fault of this program.
  std::vector<v1::Answer> ask(const Steps& steps);

  const Names& dimensions() const { return basis_->dimensions(); }

 private:
  void restore();
  // Says something, and returns what answers it.
  v1::RunSessionResponse exchange(const v1::RunSessionRequest& request);
  // Ends the stream, and returns how it ended.
  grpc::Status leave();

  v1::DecisionService::Stub& service_;
  const Clock::time_point deadline_;
  v1::RunSessionRequest open_;
  std::optional<v1::Basis> basis_;
  v1::StepBatch changes_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RunSessionRequest, v1::RunSessionResponse>> stream_;
  bool going_away_ = false;
};

// The first cause of a verdict, if it is a refusal.
std::optional<std::string> refusal(const v1::Verdict& verdict, const Names& dimensions);

// Every task and its job, in the order in which the contract numbers them.
std::vector<std::pair<v1::Job*, v1::Task*>> all_tasks(v1::Snapshot& snapshot);

}  // namespace platform
