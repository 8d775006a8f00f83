#include "session.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>

#include <google/protobuf/util/time_util.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace platform {
namespace {

// The canonical names of gRPC's codes, in their order.
constexpr std::array kCodes = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED"};

// A detail of a failed call, if it has one of that kind. None: the call did not come to the server, or not back.
template <typename Detail>
std::optional<Detail> detail(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  Detail found;
  for (const auto& any : details.details()) {
    if (any.UnpackTo(&found)) return found;
  }
  return std::nullopt;
}

// After how long to ask again. None: asking again does not help.
std::optional<std::chrono::milliseconds> retry_delay(const grpc::Status& status) {
  if (const auto told = detail<google::rpc::RetryInfo>(status)) {
    return std::chrono::milliseconds(google::protobuf::util::TimeUtil::DurationToMilliseconds(told->retry_delay()));
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return std::chrono::milliseconds(100);
  return std::nullopt;
}

constexpr int kAttempts = 5;

v1::RunSessionRequest said(const v1::StepBatch& batch) {
  v1::RunSessionRequest request;
  *request.mutable_batch() = batch;
  return request;
}

}  // namespace

std::string fault(const grpc::Status& status) {
  const auto info = detail<google::rpc::ErrorInfo>(status);
  std::string text = info ? info->reason() : kCodes.at(status.error_code());
  if (const auto bad = detail<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) text += ", " + violation.field() + ": " + violation.description();
  }
  return text;
}

void check(const grpc::Status& status) {
  if (!status.ok()) throw CallError(status);
}

void again(Clock::time_point deadline, const std::function<void()>& call) {
  for (int attempt = 1;; ++attempt) {
    try {
      return call();
    } catch (const CallError& error) {
      const auto pause = retry_delay(error.status());
      if (!pause || attempt == kAttempts || Clock::now() + *pause >= deadline) throw;
      std::this_thread::sleep_for(*pause);
    }
  }
}

Steps& Steps::best_node(const v1::Task& task) {
  auto& nodes = *add().mutable_nodes();
  nodes.set_top(1);
  return name(nodes.mutable_tasks(), task);
}

Steps& Steps::place(const v1::Task& task, const Nodes& nodes) {
  auto& place = *add().mutable_event()->mutable_place();
  *place.mutable_nodes()->mutable_indices() = nodes;
  return name(place.mutable_tasks(), task);
}

Steps& Steps::stop(std::uint32_t task) {
  auto& update = *add().mutable_event()->mutable_change()->add_tasks();
  update.set_number(task);
  update.set_status(v1::TASK_STATUS_PENDING);
  update.set_no_node(true);
  return *this;
}

Session::Session(v1::DecisionService::Stub& service, const v1::Input& input, Clock::time_point deadline)
    : service_(service), deadline_(deadline) {
  *open_.mutable_open()->mutable_input() = input;
  again(deadline_, [this] { restore(); });
}

std::vector<v1::Answer> Session::ask(const Steps& steps) {
  v1::AnswerBatch batch;
  again(deadline_, [&] {
    if (stream_ == nullptr) restore();
    batch = exchange(said(steps.batch())).answers();
  });
  if (going_away_) leave();
  for (int i = 0; i < batch.answers_size(); ++i) {
    if (batch.answers(i).changed()) *changes_.add_steps() = steps.batch().steps(i);
  }
  for (const auto& answer : batch.answers()) {
    if (answer.has_error()) throw std::logic_error(answer.error().message());
  }
  return {batch.answers().begin(), batch.answers().end()};
}

void Session::restore() {
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(deadline_);
  stream_ = service_.RunSession(context_.get());
  going_away_ = false;
  const auto now = exchange(open_).opened().basis();
  if (!basis_) basis_ = now;
  if (basis_->policy_digest() != now.policy_digest() || basis_->engine_version() != now.engine_version()) {
    leave();
    throw CallError({grpc::StatusCode::ABORTED, "policy or engine are others where the session should have gone on: begin anew"});
  }
  if (changes_.steps_size() == 0) return;
  const auto repeated = exchange(said(changes_)).answers();
  if (!std::all_of(repeated.answers().begin(), repeated.answers().end(), [](const auto& answer) { return answer.changed(); })) {
    leave();
    throw CallError({grpc::StatusCode::ABORTED, "a step that succeeded before is refused: begin anew"});
  }
}

v1::RunSessionResponse Session::exchange(const v1::RunSessionRequest& request) {
  v1::RunSessionResponse response;
  // If writing fails, the stream has ended; its status has the reason.
  for (bool heard = stream_->Write(request) && stream_->Read(&response); heard; heard = stream_->Read(&response)) {
    if (!response.has_going_away()) return response;
    going_away_ = true;
  }
  const auto status = leave();
  throw CallError(status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the session was ended") : status);
}

grpc::Status Session::leave() {
  if (stream_ == nullptr) return grpc::Status::OK;
  stream_->WritesDone();
  v1::RunSessionResponse unread;
  while (stream_->Read(&unread)) {
  }
  const auto status = stream_->Finish();
  stream_.reset();
  return status;
}

std::optional<std::string> refusal(const v1::Verdict& verdict, const Names& dimensions) {
  if (verdict.vote() == v1::VOTE_PERMIT) return std::nullopt;
  const auto& cause = verdict.causes(0);
  // No name: only a newer version knows the code.
  const auto code = v1::CauseCode_Name(cause.code());
  auto text = cause.plugin() + " " + (code.empty() ? std::to_string(cause.code()) : code);
  if (!cause.dimensions().empty()) {
    std::array<char, 128> numbers{};
    std::snprintf(numbers.data(), numbers.size(), ": %.0f + %.0f > %.0f", cause.have(), cause.need(), cause.limit());
    text += ", " + dimensions.Get(static_cast<int>(cause.dimensions(0))) + numbers.data();
  }
  return text;
}

std::vector<std::pair<v1::Job*, v1::Task*>> all_tasks(v1::Snapshot& snapshot) {
  std::vector<std::pair<v1::Job*, v1::Task*>> tasks;
  for (auto& job : *snapshot.mutable_jobs()) {
    for (auto& group : *job.mutable_groups()) {
      for (auto& task : *group.mutable_tasks()) tasks.emplace_back(&job, &task);
    }
  }
  return tasks;
}

}  // namespace platform
