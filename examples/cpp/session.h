// What a client of Apportion wants beside its stubs: a session that is asked like a function, and errors and reasons in words.
#pragma once

#include <chrono>
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

using Names = google::protobuf::RepeatedPtrField<std::string>;

// What the details of a failed call say.
std::string fault(const grpc::Status& status);

// A call that failed.
class CallError : public std::runtime_error {
 public:
  explicit CallError(const grpc::Status& status) : std::runtime_error(fault(status)) {}
};

// A conversation about one snapshot: each question sees what the steps before it changed.
class Session {
 public:
  Session(v1::ApportionService::Stub& service, const v1::Input& input, std::chrono::milliseconds within);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Returns one answer for each step. A step that fails is a fault of this program.
  std::vector<v1::Answer> ask(const v1::StepBatch& steps);

  // Returns one answer for each step that fill adds to a batch.
  template <typename Fill>
  std::vector<v1::Answer> ask(const Fill& fill) {
    v1::StepBatch steps;
    fill(steps);
    return ask(steps);
  }

  const Names& dimensions() const { return dimensions_; }

 private:
  void write(const v1::RunSessionRequest& request);
  v1::RunSessionResponse read();
  grpc::Status finish();

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RunSessionRequest, v1::RunSessionResponse>> stream_;
  Names dimensions_;
};

// The first reason of a verdict, if it is a refusal.
std::optional<std::string> refusal(const v1::Verdict& verdict, const Names& dimensions);

// Every task and its job, in the order in which the contract numbers them.
std::vector<std::pair<v1::Job*, v1::Task*>> all_tasks(v1::Snapshot& snapshot);

}  // namespace platform
