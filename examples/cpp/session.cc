#include "session.h"

#include <array>
#include <cstdio>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace platform {
namespace {

// The canonical names of gRPC's codes, in their order.
constexpr std::array kCodes = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED"};

}  // namespace

std::string fault(const grpc::Status& status) {
  std::string text = kCodes.at(status.error_code());
  google::rpc::Status details;  // None: the call did not come to the server, or not back.
  details.ParseFromString(status.error_details());
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    if (detail.UnpackTo(&info)) {
      text = info.reason();
    } else if (detail.UnpackTo(&bad)) {
      for (const auto& violation : bad.field_violations()) text += ", " + violation.field() + ": " + violation.description();
    }
  }
  return text;
}

Session::Session(v1::ApportionService::Stub& service, const v1::Input& input, std::chrono::milliseconds within) {
  context_.set_deadline(std::chrono::system_clock::now() + within);
  stream_ = service.RunSession(&context_);
  v1::RunSessionRequest request;
  *request.mutable_open()->mutable_snapshot() = input.snapshot();
  *request.mutable_open()->mutable_policy() = input.policy();
  write(request);
  dimensions_ = read().opened().basis().dimensions();
}

Session::~Session() {
  if (stream_ == nullptr) return;
  context_.TryCancel();
  finish();
}

std::vector<v1::Answer> Session::ask(const v1::StepBatch& steps) {
  v1::RunSessionRequest request;
  *request.mutable_batch() = steps;
  write(request);
  auto response = read();
  while (!response.has_answers()) response = read();
  for (const auto& answer : response.answers().answers()) {
    if (answer.has_error()) throw std::logic_error(answer.error().message());
  }
  return {response.answers().answers().begin(), response.answers().answers().end()};
}

void Session::write(const v1::RunSessionRequest& request) {
  if (!stream_->Write(request)) throw CallError(finish());
}

v1::RunSessionResponse Session::read() {
  v1::RunSessionResponse response;
  if (!stream_->Read(&response)) throw CallError(finish());
  return response;
}

grpc::Status Session::finish() {
  const auto status = stream_->Finish();
  stream_.reset();
  return status;
}

std::optional<std::string> refusal(const v1::Verdict& verdict, const Names& dimensions) {
  if (verdict.vote() != v1::VOTE_REJECT) return std::nullopt;
  const auto& reason = verdict.reasons(0);
  // No name: only a newer version knows the code.
  const auto code = v1::ReasonCode_Name(reason.code());
  auto text = reason.plugin() + " " + (code.empty() ? std::to_string(reason.code()) : code);
  if (reason.has_dimension()) {
    std::array<char, 128> numbers{};
    std::snprintf(numbers.data(), numbers.size(), ": %.0f + %.0f > %.0f", reason.have(), reason.need(), reason.limit());
    text += ", " + dimensions.Get(static_cast<int>(reason.dimension())) + numbers.data();
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
